#include "data/hops.h"

#include "data/row.h"
#include "norma/core/error.h"

namespace norma {

Hops::Hops(const DataConfig& config, const BatchShape& shape)
    : GeneratedRows("hops", shape, config.evaluation_batches) {
  // One token for each pair, three for each query; the last answer is only a target.
  const std::int64_t fitting = std::max<std::int64_t>(2, shape.time - 2);
  symbols_ = parameter("symbols", config.symbols, std::min(kUsualSymbols, fitting), 2, kMostSymbols);
  hops_ = parameter("hops", config.hops, std::min(kUsualHops, symbols_ - 1), 1, symbols_ - 1);
  queries_ = std::min(symbols_, (shape.time + 1 - symbols_) / 3);
  if (queries_ < 1) {
    fail("hops: {} pairs and one query need {} tokens; the rows have {}", symbols_, symbols_ + 2, shape.time);
  }
}

void Hops::write_row(Draws& draws, std::int32_t* tokens, std::int32_t* targets) const {
  std::array<std::int32_t, kMostSymbols> order, next;  // not initialised: only the first symbols_ are used
  const auto symbol = static_cast<std::int32_t>(symbols_ * symbols_),
             query = symbol + static_cast<std::int32_t>(symbols_);
  Row row(tokens, targets, shape().time, query);
  draw_distinct(draws, symbols_, symbols_, order);
  for (std::int64_t i = 0; i < symbols_; ++i) next[order[i]] = order[i + 1 < symbols_ ? i + 1 : 0];
  draw_distinct(draws, symbols_, symbols_, order);
  for (std::int64_t i = 0; i < symbols_; ++i) {
    row.put(order[i] * static_cast<std::int32_t>(symbols_) + next[order[i]]);
  }
  draw_distinct(draws, symbols_, queries_, order);
  for (std::int64_t i = 0; i < queries_; ++i) {
    const auto extra = static_cast<std::int32_t>(draws.below(static_cast<std::uint32_t>(hops_)));
    std::int32_t answer = next[order[i]];
    for (std::int32_t hop = 0; hop < extra; ++hop) answer = next[answer];
    row.put(query + extra);
    row.put(symbol + order[i]);
    row.put_answer(symbol + answer);
  }
}

std::string Hops::describe() const {
  return fmt::format("hops: {} queries of 1 to {} hops through a cycle of {} symbols; optimum 0, guessing ln {} nats",
                     queries_, hops_, symbols_, symbols_ - 1);
}

std::string Hops::decode(std::span<const std::int32_t> tokens) const {
  std::string text;
  for (const std::int32_t token : tokens) {
    if (!text.empty()) text += ' ';
    const std::int64_t pairs = symbols_ * symbols_;
    if (token < pairs) {
      text += fmt::format("{}>{}", token / symbols_, token % symbols_);
    } else if (token < pairs + symbols_) {
      text += std::to_string(token - pairs);
    } else {
      text += fmt::format("?{}", token - pairs - symbols_ + 1);
    }
  }
  return text;
}

}  // namespace norma
