#include "norma/data/source.h"

#include <algorithm>
#include <string>

#include "data/classification.h"
#include "data/grammar.h"
#include "data/held_out.h"
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
  Open open;
  unsigned readings;  // bits
  From from = From::rules;
};

constexpr unsigned bit_of(ReadingManner reading) { return 1U << static_cast<unsigned>(reading); }
constexpr unsigned kOnward = bit_of(ReadingManner::onward), kWhole = bit_of(ReadingManner::whole),
                   kPaired = bit_of(ReadingManner::paired);

// Of each reading the first is its usual task, and the first from a file that of files.
constexpr Task kTasks[] = {
    {"grammar", make<Grammar>, kOnward},
    {"sentences", make<Sentences>, kOnward},
    {"hops", make<Hops>, kOnward},
    {"sort", open_sort, kOnward | kPaired},
    {"copy", open_copy, kOnward | kPaired},
    {"reverse", open_reverse, kOnward | kPaired},
    {"recall", make<Recall>, kOnward},
    {"masked_grammar", open_masked_grammar, kWhole},
    {"masked_sentences", open_masked_sentences, kWhole},
    {"text", open_text, kOnward, From::file},
    {"tokens", open_tokens, kOnward, From::file},
    {"masked", open_masked, kWhole, From::file},
    {"translation", make<Translation>, kPaired, From::file},
    {"classification", make<Classification>, kWhole, From::file},
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
  const HeldOut part = parse_held_out(config.held_out);
  DataConfig opened = config;
  if (part != HeldOut::all) {  // 0 asks for all there are; of a generated task there are as many as one likes
    constexpr std::int64_t kOfGenerated = 8;
    opened.evaluation_batches *= 2;
    if (opened.evaluation_batches == 0 && !reads_files(config.task)) opened.evaluation_batches = 2 * kOfGenerated;
  }
  for (const Task& task : kTasks) {
    if (config.task == task.name) return part_of(task.open(opened, shape), part);
  }
  fail("unknown data.task '{}'{}; expected one of {}", config.task, did_you_mean(config.task, task_names()),
       fmt::join(task_names(), ", "));
}

void check_vocabulary(const Source& source, std::int64_t model_vocabulary) {
  if (source.vocabulary() <= model_vocabulary) return;
  fail("the data has a vocabulary of {} tokens, but the model's is {} ({})", source.vocabulary(), model_vocabulary,
       source.describe());
}

std::vector<std::string> tasks_for(ReadingManner reading) {
  std::vector<std::string> names;
  for (const Task& task : kTasks) {
    if ((task.readings & bit_of(reading)) != 0) names.emplace_back(task.name);
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
