#include "data/transduction.h"

#include <algorithm>

#include "norma/core/error.h"

namespace norma {

Transduction::Transduction(const char* name, Answer answer, const DataConfig& config, const BatchShape& shape)
    : GeneratedSource(name, shape, config.evaluation_batches),
      name_(name),
      answer_(answer),
      symbols_(parameter("symbols", config.symbols, kUsualSymbols, 2, kMostSymbols)) {
  if (shape.time < 2) fail("{}: rows of {} tokens; expected at least 2", name, shape.time);
}

void Transduction::write_row(Draws& draws, std::int32_t* tokens, std::int32_t* targets) const {
  const std::int64_t time = shape().time, n = time / 2;
  const auto mark = static_cast<std::int32_t>(symbols_);
  std::fill_n(targets, time, kIgnored);
  std::fill_n(tokens, time, mark);
  for (std::int64_t i = 0; i < n; ++i) {
    tokens[i] = static_cast<std::int32_t>(draws.below(static_cast<std::uint32_t>(symbols_)));
  }
  std::int32_t* const answer = targets + n;
  std::copy_n(tokens, n, answer);
  if (answer_ == Answer::sorted) std::sort(answer, answer + n);
  std::copy_n(answer, n - 1, tokens + n + 1);  // behind the mark; the last one is only a target
}

std::string Transduction::describe() const {
  return fmt::format("{}: {} of {} symbols; optimum 0, guessing ln {} nats", name_, shape().time / 2, symbols_,
                     symbols_);
}

}  // namespace norma
