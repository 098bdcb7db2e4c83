#include "norma/data/source.h"

#include <string>

#include "data/grammar.h"
#include "data/hops.h"
#include "data/recall.h"
#include "data/transduction.h"
#include "data/windows.h"
#include "norma/core/error.h"
#include "norma/core/names.h"

namespace norma {
namespace {

using Open = std::unique_ptr<Source> (*)(const DataConfig&, const BatchShape&);

template <typename Task>
std::unique_ptr<Source> generate(const DataConfig& config, const BatchShape& shape) {
  return std::make_unique<Task>(config, shape);
}

std::unique_ptr<Source> open_text(const DataConfig& config, const BatchShape& shape) {
  return std::make_unique<WindowSource>(open_text_corpus(config), config, shape);
}

std::unique_ptr<Source> open_tokens(const DataConfig& config, const BatchShape& shape) {
  return std::make_unique<WindowSource>(open_token_corpus(config), config, shape);
}

const std::string kTaskNames[] = {"grammar", "hops", "copy", "sort", "recall", "text", "tokens"};
constexpr Open kOpen[] = {generate<Grammar>, generate<Hops>, generate<Copy>, generate<Sort>,
                          generate<Recall>,  open_text,      open_tokens};
static_assert(std::size(kOpen) == std::size(kTaskNames));

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

std::unique_ptr<Source> open_source(const DataConfig& config, const BatchShape& shape) {
  check_shape(shape);
  if (config.evaluation_batches < 0) {
    fail("data.evaluation_batches is {}; expected a number of batches, or 0 for all", config.evaluation_batches);
  }
  for (std::size_t i = 0; i < std::size(kTaskNames); ++i) {
    if (config.task == kTaskNames[i]) return kOpen[i](config, shape);
  }
  fail("unknown data.task '{}'{}; expected one of {}", config.task, did_you_mean(config.task, kTaskNames),
       fmt::join(kTaskNames, ", "));
}

void check_vocabulary(const Source& source, std::int64_t model_vocabulary) {
  if (source.vocabulary() <= model_vocabulary) return;
  fail("the data has a vocabulary of {} tokens, but the model's is {} ({})", source.vocabulary(), model_vocabulary,
       source.describe());
}

std::span<const std::string> task_names() { return kTaskNames; }

}  // namespace norma
