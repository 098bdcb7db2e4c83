#include "norma/data/source.h"

#include <string>

#include "data/classification.h"
#include "data/grammar.h"
#include "data/hops.h"
#include "data/masked.h"
#include "data/recall.h"
#include "data/sentences.h"
#include "data/transduction.h"
#include "data/translation.h"
#include "data/windows.h"
#include "norma/core/error.h"
#include "norma/core/names.h"

namespace norma {
namespace {

using Open = std::unique_ptr<Source> (*)(const DataConfig&, const BatchShape&);

template <typename Task>
std::unique_ptr<Source> make(const DataConfig& config, const BatchShape& shape) {
  return std::make_unique<Task>(config, shape);
}

std::unique_ptr<Source> open_text(const DataConfig& config, const BatchShape& shape) {
  return std::make_unique<WindowSource>(open_text_corpus(config), config, shape);
}

std::unique_ptr<Source> open_masked(const DataConfig& config, const BatchShape& shape) {
  return std::make_unique<Masked>(open_text_corpus(config), config, shape);
}

std::unique_ptr<Source> open_tokens(const DataConfig& config, const BatchShape& shape) {
  return std::make_unique<WindowSource>(open_token_corpus(config), config, shape);
}

struct Task {
  const char* name;
  Open open;
};

constexpr Task kTasks[] = {
    {"grammar", make<Grammar>},
    {"sentences", make<Sentences>},
    {"hops", make<Hops>},
    {"copy", make<Copy>},
    {"sort", make<Sort>},
    {"recall", make<Recall>},
    {"text", open_text},
    {"tokens", open_tokens},
    {"masked", open_masked},
    {"translation", make<Translation>},
    {"classification", make<Classification>},
};

constexpr std::int64_t kMostCells = std::int64_t{1} << 31;  // tokens of one batch; keeps a slip from filling memory

void check_shape(const BatchShape& shape) {
  if (shape.batch < 1 || shape.time < 1 || shape.source_time < 0) {
    fail("a batch of {} rows, {} tokens and {} source tokens; expected at least 1 row of 1 token", shape.batch,
         shape.time, shape.source_time);
  }
  const std::int64_t longest = std::max(shape.time, shape.source_time);
  if (shape.batch > kMostCells / longest) {
    fail("a batch of {} x {} tokens; expected at most {} tokens", shape.batch, longest, kMostCells);
  }
}

}  // namespace

Source::~Source() = default;

std::string Source::decode(std::span<const std::int32_t> tokens) const {
  return fmt::format("{}", fmt::join(tokens, " "));
}

std::string Source::reference(std::int64_t, std::int64_t) const { return ""; }

std::unique_ptr<Source> open_source(const DataConfig& config, const BatchShape& shape) {
  check_shape(shape);
  if (config.evaluation_batches < 0) {
    fail("data.evaluation_batches is {}; expected a number of batches, or 0 for all", config.evaluation_batches);
  }
  for (const Task& task : kTasks) {
    if (config.task == task.name) return task.open(config, shape);
  }
  fail("unknown data.task '{}'{}; expected one of {}", config.task, did_you_mean(config.task, task_names()),
       fmt::join(task_names(), ", "));
}

void check_vocabulary(const Source& source, std::int64_t model_vocabulary) {
  if (source.vocabulary() <= model_vocabulary) return;
  fail("the data has a vocabulary of {} tokens, but the model's is {} ({})", source.vocabulary(), model_vocabulary,
       source.describe());
}

std::span<const std::string> task_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Task& task : kTasks) all.emplace_back(task.name);
    return all;
  }();
  return names;
}

}  // namespace norma
