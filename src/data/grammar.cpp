#include "data/grammar.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "norma/core/error.h"

namespace norma {
namespace {

std::vector<std::int32_t> shuffled(Draws& draws, std::int64_t size) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[draws.below(static_cast<std::uint32_t>(i))]);
  return order;
}

}  // namespace

Grammar::Grammar(const DataConfig& config, const BatchShape& shape)
    : GeneratedRows("grammar", shape, config.evaluation_batches),
      symbols_(parameter("symbols", config.symbols, 16, 2, kMostSymbols)),
      choices_(parameter("choices", config.choices, std::min<std::int64_t>(3, symbols_), 1, symbols_)),
      depth_(parameter("depth", config.depth, 5, 1, kDeepest)) {
  // Pairs (i, order[i + shift]) for `choices` different shifts: each symbol is left and right equally often, and no
  // pair comes twice. They are dealt to the symbols like cards.
  for (std::int64_t level = 0; level < depth_; ++level) {
    // Counted from the leaves, so that a deeper grammar contains the shallower one.
    Draws draws(0, hash_name("data.grammar.rules"), static_cast<std::uint64_t>(depth_ - level), 0);
    const std::vector<std::int32_t> order = shuffled(draws, symbols_), shifts = shuffled(draws, symbols_);
    const std::vector<std::int32_t> deal = shuffled(draws, symbols_ * choices_);
    std::vector<Pair>& rules = rules_.emplace_back(deal.size());
    for (std::size_t card = 0; card < deal.size(); ++card) {
      const auto left = static_cast<std::int32_t>(card % static_cast<std::size_t>(symbols_));
      const std::int32_t shift = shifts[card / static_cast<std::size_t>(symbols_)];
      rules[static_cast<std::size_t>(deal[card])] = {left, order[static_cast<std::size_t>((left + shift) % symbols_)]};
    }
  }
}

void Grammar::derive(Draws& draws, std::int64_t levels, std::int32_t* out) const {
  out[0] = static_cast<std::int32_t>(draws.below(static_cast<std::uint32_t>(symbols_)));
  for (std::int64_t level = depth_ - levels, size = 1; level < depth_; ++level, size *= 2) {
    const std::vector<Pair>& rules = rules_[static_cast<std::size_t>(level)];
    for (std::int64_t i = size - 1; i >= 0; --i) {  // from the end, in place
      const Pair& pair =
          rules[static_cast<std::size_t>(out[i] * choices_ + draws.below(static_cast<std::uint32_t>(choices_)))];
      out[2 * i] = pair.left;
      out[2 * i + 1] = pair.right;
    }
  }
}

void Grammar::write_row(Draws& draws, std::int32_t* tokens, std::int32_t* targets) const {
  const std::int64_t time = shape().time;
  for (std::int64_t at = 0; at < time;) {
    const std::int64_t fitting = std::bit_width(static_cast<std::uint64_t>(time - at)) - 1;
    const std::int64_t levels = std::min(depth_, fitting);
    derive(draws, levels, targets + at);
    at += std::int64_t{1} << levels;
  }
  tokens[0] = static_cast<std::int32_t>(symbols_);
  std::copy_n(targets, time - 1, tokens + 1);
}

double Grammar::plateau(std::int64_t levels) const {
  const double size = std::ldexp(1.0, static_cast<int>(levels));
  return (std::log(symbols_) + (size - 1) * std::log(choices_)) / size;
}

std::optional<double> Grammar::optimum() const {
  const std::int64_t time = shape().time, whole = std::int64_t{1} << depth_;
  double nats = static_cast<double>(time / whole) * static_cast<double>(whole) * plateau(depth_);
  for (std::int64_t levels = 0; levels < depth_; ++levels) {  // the rest, by its binary digits
    const std::int64_t size = std::int64_t{1} << levels;
    if ((time % whole) & size) nats += static_cast<double>(size) * plateau(levels);
  }
  return nats / static_cast<double>(time);
}

std::string Grammar::describe() const {
  std::string plateaus;
  for (std::int64_t levels = 0; levels <= depth_; ++levels) plateaus += fmt::format(" {:.3f}", plateau(levels));
  return fmt::format("grammar: {} levels of {} symbols with {} rules each; nats a token by levels understood:{}",
                     depth_, symbols_, choices_, plateaus);
}

}  // namespace norma
