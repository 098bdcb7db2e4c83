// What a study does unless told otherwise, and what it refuses.
#include <set>

#include "lab/study/parts.h"
#include "norma/core/error.h"

namespace norma {
namespace {

constexpr std::size_t kMostSchemes = 64;
constexpr std::size_t kMostRuns = 20'000;
constexpr int kMostExtraRates = 16;

}  // namespace

StudyConfig::StudyConfig()
    : schemes({"post", "pre", "admin", "rezero", "deepnorm", "peri", "lns", "keel"}),
      depths({6, 12, 24, 48}),
      rates({1e-3, 3e-3, 1e-2, 3e-2}),
      warmups({0, 30}),
      seeds({1, 2}),
      budget({StudyBudget::Unit::seconds, 180}) {
  base.model.layers = 12;
  base.model.width = 32;
  base.model.heads = 4;
  base.model.time = 32;
  base.model.batch = 8;
  base.model.embedding_std = 1;
  base.train.steps = 100;
  base.data.evaluation_batches = 16;
  base.train.clip = 0;
  base.train.log_every = 4;
  base.train.evaluate_every = 0;
  base.train.checkpoint_every = 0;
  base.train.probes = false;
  base.train.tensorboard = false;
}

StudyConfig default_study_on_gpu() {
  StudyConfig config;
  config.base.model.width = 64;
  config.base.model.time = 128;  // one string of seven levels
  config.base.data.task = "grammar";
  config.base.data.depth = 7;
  config.base.train.precision = Precision::bf16;
  config.depth_use_time = 0.4;
  config.budget.amount =
      165;  // small cohorts at the end take longer than their tokens say, and all of it three minutes
  return config;
}

void check_study(const StudyConfig& config) {
  if (config.schemes.empty()) fail("a study needs at least one scheme");
  if (config.schemes.size() > kMostSchemes)
    fail("a study of {} schemes is too large; at most {}", config.schemes.size(), kMostSchemes);
  std::set<std::string> seen;
  for (const SchemeChoice& scheme : config.schemes) {
    if (!seen.insert(scheme.asked()).second) fail("scheme '{}' is given twice", scheme.asked());
  }
  if (!config.inspect && !config.train) fail("a study without analyses and without training has nothing to do");
  if (config.inspect && config.depths.empty()) fail("the analyses at init need at least one depth");
  for (const std::int64_t depth : config.depths) {
    if (depth < 1 || depth > 10'000) fail("depth {} was given; expected 1 to 10000", depth);
  }
  if (!config.train) return;
  if (config.rates.empty() || config.warmups.empty() || config.seeds.empty())
    fail("training needs at least one learning rate, one warmup and one seed");
  for (const double rate : config.rates) {
    if (!(rate > 0)) fail("learning rate {} was given; expected one above 0", rate);
  }
  if (config.extra_rates < 0 || config.extra_rates > kMostExtraRates)
    fail("{} extra rates were given; expected 0 to {}", config.extra_rates, kMostExtraRates);
  const std::size_t rates = config.rates.size() + static_cast<std::size_t>(config.extra_rates);
  const std::size_t runs = config.schemes.size() * rates * config.warmups.size() * config.seeds.size();
  if (runs > kMostRuns) fail("{} runs are too many for one study; at most {}", runs, kMostRuns);
}

}  // namespace norma
