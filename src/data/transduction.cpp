#include "data/transduction.h"

#include <algorithm>

#include "norma/core/error.h"

namespace norma {
namespace {

constexpr std::int64_t kMostAnswerSymbols = std::int64_t{1} << 20, kUsualAnswerSymbols = 16;

}  // namespace

void TransductionRule::ask(Draws& draws, std::int32_t* question) const {
  for (std::int64_t i = 0; i < length; ++i)
    question[i] = static_cast<std::int32_t>(draws.below(static_cast<std::uint32_t>(symbols)));
}

void TransductionRule::solve(const std::int32_t* question, std::int32_t* answered) const {
  std::copy_n(question, length, answered);
  if (answer == Answer::reversed) std::reverse(answered, answered + length);
  if (answer == Answer::sorted) std::sort(answered, answered + length);
}

std::string TransductionRule::describe() const {
  return fmt::format("{}: {} of {} symbols; optimum 0, guessing ln {} nats", name, length, symbols, symbols);
}

void Transduction::write_row(Draws& draws, std::int32_t* tokens, std::int32_t* targets) const {
  const std::int64_t time = shape().time, n = rule_.length;
  std::fill_n(targets, time, kIgnored);
  std::fill_n(tokens, time, static_cast<std::int32_t>(rule_.symbols));
  rule_.ask(draws, tokens);
  rule_.solve(tokens, targets + n);
  std::copy_n(targets + n, n - 1, tokens + n + 1);  // behind the mark; the last one is only a target
}

void PairedTransduction::write(Draws& draws, std::int64_t row, Batch& batch) const {
  std::int32_t* const question = pair_source(shape(), row, batch);
  rule_.ask(draws, question);
  rule_.solve(question, pair_answer(shape(), row, batch));
  end_pair(shape(), special(), row, rule_.length, rule_.length, batch);
}

std::unique_ptr<Source> open_transduction(const char* name, Answer answer, const DataConfig& config,
                                          const BatchShape& shape) {
  const bool paired = shape.source_time > 0;
  const std::int64_t shorter = paired ? std::min(shape.time, shape.source_time) : shape.time;
  if (shorter < 2) fail("{}: rows of {} tokens; expected at least 2", name, shorter);
  const TransductionRule rule{
      .name = name,
      .answer = answer,
      .symbols = parameter("symbols", config.symbols, kUsualAnswerSymbols, 2, kMostAnswerSymbols),
      .length = paired ? shorter - 1 : shorter / 2};
  if (paired) return std::make_unique<PairedTransduction>(rule, config, shape);
  return std::make_unique<Transduction>(rule, config, shape);
}

}  // namespace norma
