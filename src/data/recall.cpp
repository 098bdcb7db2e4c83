#include "data/recall.h"

#include "data/row.h"
#include "norma/core/error.h"

namespace norma {

Recall::Recall(const DataConfig& config, const BatchShape& shape)
    : GeneratedRows("recall", shape, config.evaluation_batches),
      symbols_(parameter("symbols", config.symbols, kUsualSymbols, 2, kMostSymbols)),
      pairs_(std::min(symbols_, (shape.time + 1) / 4)) {
  if (pairs_ < 1) fail("recall: rows of {} tokens; expected at least 3", shape.time);
}

void Recall::write_row(Draws& draws, std::int32_t* tokens, std::int32_t* targets) const {
  std::array<std::int32_t, kMostSymbols> keys, values;  // not initialised: only the first symbols_ are used
  Row row(tokens, targets, shape().time, static_cast<std::int32_t>(2 * symbols_));
  draw_distinct(draws, symbols_, pairs_, keys);
  for (std::int64_t i = 0; i < pairs_; ++i) {
    values[keys[i]] = static_cast<std::int32_t>(symbols_ + draws.below(static_cast<std::uint32_t>(symbols_)));
    row.put(keys[i]);
    row.put(values[keys[i]]);
  }
  for (std::int64_t i = 0; i < pairs_; ++i) {
    std::swap(keys[i], keys[i + draws.below(static_cast<std::uint32_t>(pairs_ - i))]);
    row.put(keys[i]);
    row.put_answer(values[keys[i]]);
  }
}

std::string Recall::describe() const {
  return fmt::format("recall: {} pairs of {} keys and values; optimum 0, guessing ln {} nats", pairs_, symbols_,
                     symbols_);
}

}  // namespace norma
