#include "norma/data/source.h"

#include <algorithm>
#include <string>

#include "data/classification.h"
#include "data/diffusion/noised.h"
#include "data/grammar.h"
#include "data/graphs/block_model.h"
#include "data/graphs/mixing.h"
#include "data/graphs/planetoid.h"
#include "data/graphs/tu.h"
#include "data/held_out.h"
#include "data/hops.h"
#include "data/images/images.h"
#include "data/masked.h"
#include "data/mixture/mixture.h"
#include "data/parity/parity.h"
#include "data/recall.h"
#include "data/sentences.h"
#include "data/shapes/shapes.h"
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
  auto windows = std::make_unique<WindowSource>(open_text_corpus(config), config, shape);
  const std::int64_t words = windows->vocabulary();
  return std::make_unique<MaskedText>(std::move(windows), words, config, shape);
}

std::unique_ptr<Source> open_masked_grammar(const DataConfig& config, const BatchShape& shape) {
  auto language = std::make_unique<Grammar>(config, shape);
  const std::int64_t words = language->vocabulary() - 1;  // without the start mark
  return std::make_unique<MaskedLanguage>("masked_grammar", std::move(language), words, config, shape);
}

std::unique_ptr<Source> open_masked_sentences(const DataConfig& config, const BatchShape& shape) {
  auto language = std::make_unique<Sentences>(config, shape);
  const std::int64_t words = language->vocabulary();
  return std::make_unique<MaskedLanguage>("masked_sentences", std::move(language), words, config, shape);
}

std::unique_ptr<Source> open_copy(const DataConfig& config, const BatchShape& shape) {
  return open_transduction("copy", Answer::same, config, shape);
}

std::unique_ptr<Source> open_reverse(const DataConfig& config, const BatchShape& shape) {
  return open_transduction("reverse", Answer::reversed, config, shape);
}

std::unique_ptr<Source> open_sort(const DataConfig& config, const BatchShape& shape) {
  return open_transduction("sort", Answer::sorted, config, shape);
}

std::unique_ptr<Source> open_tokens(const DataConfig& config, const BatchShape& shape) {
  return std::make_unique<WindowSource>(open_token_corpus(config), config, shape);
}

enum class From { rules, file };

struct Task {
  const char* name;
  Open open = nullptr;
  std::vector<std::string_view> kinds;
  From from = From::rules;
  std::vector<std::string> settings = {};  // that [data.settings] may give it
};

// Of each kind of data the first is its usual task, and the first from a file that of files.
const Task kTasks[] = {
    {"grammar", make<Grammar>, {"onward"}},
    {"sentences", make<Sentences>, {"onward"}},
    {"hops", make<Hops>, {"onward"}},
    {"sort", open_sort, {"onward", "paired"}},
    {"copy", open_copy, {"onward", "paired"}},
    {"reverse", open_reverse, {"onward", "paired"}},
    {"recall", make<Recall>, {"onward"}},
    {"masked_grammar", open_masked_grammar, {"whole"}},
    {"masked_sentences", open_masked_sentences, {"whole"}},
    {"text", open_text, {"onward"}, From::file},
    {"tokens", open_tokens, {"onward"}, From::file},
    {"masked", open_masked, {"whole"}, From::file},
    {"translation", make<Translation>, {"paired"}, From::file},
    {"classification", make<Classification>, {"whole"}, From::file},
    {"parity", make<Parity>, {"features"}, From::rules, {"features", "bits", "separation"}},
    {"mixture", make<Mixture>, {"noised"}, From::rules, {"centres", "deviation"}},
    {"shapes", make<Shapes>, {"images", "noised"}, From::rules, {"classes", "size", "channels", "contrast"}},
    {"block_model",
     make<BlockModel>,
     {"graph"},
     From::rules,
     {"nodes", "classes", "features", "taught", "degree", "inside", "signal", "drop_edge"}},
    {"planetoid", make<Planetoid>, {"graph"}, From::file, {"drop_edge"}},
    {"edge_list", make<Planetoid>, {"graph"}, From::file, {"drop_edge"}},
    {"mixing", make<Mixing>, {"graphs"}, From::rules, {"graphs", "nodes", "colours", "degree", "inside", "drop_edge"}},
    {"tu", make<TuGraphs>, {"graphs"}, From::file, {"drop_edge"}},
    {"images",
     make<Images>,
     {"images", "noised"},
     From::file,
     {"crop", "flip", "cutout", "mixup", "resize", "channels"}},
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

void check_settings(const Task& task, const DataConfig& config) {
  for (const auto& [name, value] : config.settings) {
    if (std::find(task.settings.begin(), task.settings.end(), name) != task.settings.end()) continue;
    fail("data.settings.{}: the task {} has no such setting{}{}", name, task.name, did_you_mean(name, task.settings),
         task.settings.empty() ? "" : fmt::format("; expected {}", fmt::join(task.settings, ", ")));
  }
}

}  // namespace

Source::~Source() = default;

std::string Source::decode(std::span<const std::int32_t> tokens) const {
  return fmt::format("{}", fmt::join(tokens, " "));
}

std::int32_t Source::first_token() const {
  if (evaluation_batches() == 0) return 0;
  Batch batch;
  fill_evaluation(0, batch);
  return batch.has("tokens") ? batch.ids("tokens").at(0) : 0;
}

std::map<std::string, std::int64_t> Source::sizes() const {
  std::map<std::string, std::int64_t> all;
  if (vocabulary() > 0) all["vocabulary"] = vocabulary();
  if (classes() > 0) all["classes"] = classes();
  return all;
}

std::string Source::reference(std::int64_t, std::int64_t) const { return ""; }

std::unique_ptr<Source> open_source(const DataConfig& config, const BatchShape& shape) {
  check_shape(shape);
  if (config.evaluation_batches < 0) {
    fail("data.evaluation_batches is {}; expected a number of batches, or 0 for all", config.evaluation_batches);
  }
  const HeldOut part = parse_held_out(config.held_out);
  DataConfig opened = config;
  if (part != HeldOut::all) {  // 0 asks for all there are; of a generated task there are as many as one likes
    constexpr std::int64_t kOfGenerated = 8;
    opened.evaluation_batches *= 2;
    if (opened.evaluation_batches == 0 && !reads_files(config.task)) opened.evaluation_batches = 2 * kOfGenerated;
  }
  for (const Task& task : kTasks) {
    if (config.task != task.name) continue;
    check_settings(task, config);
    std::unique_ptr<Source> source = task.open(opened, shape);
    if (shape.noised) source = std::make_unique<Noised>(std::move(source), config.diffusion, shape);
    return part_of(std::move(source), part);
  }
  fail("unknown data.task '{}'{}; expected one of {}", config.task, did_you_mean(config.task, task_names()),
       fmt::join(task_names(), ", "));
}

void check_vocabulary(const Source& source, std::int64_t model_vocabulary) {
  if (source.vocabulary() <= model_vocabulary) return;
  fail("the data has a vocabulary of {} tokens, but the model's is {} ({})", source.vocabulary(), model_vocabulary,
       source.describe());
}

std::vector<std::string> tasks_for(std::string_view kind) {
  std::vector<std::string> names;
  for (const Task& task : kTasks) {
    if (std::find(task.kinds.begin(), task.kinds.end(), kind) != task.kinds.end()) names.emplace_back(task.name);
  }
  return names;
}

bool reads_files(std::string_view name) {
  return std::any_of(std::begin(kTasks), std::end(kTasks),
                     [&](const Task& task) { return task.name == name && task.from == From::file; });
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
