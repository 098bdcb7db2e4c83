#include "data/masked.h"

#include <algorithm>
#include <cmath>

#include "norma/core/error.h"

namespace norma {
namespace {

constexpr std::uint64_t kTrainingStream = hash_name("data.masked");
constexpr std::uint64_t kEvaluationStream = hash_name("data.masked.evaluation");

}  // namespace

Masked::Masked(Corpus corpus, const DataConfig& config, const BatchShape& shape)
    : windows_(std::move(corpus), config, shape), shape_(shape) {
  if (!(config.mask_fraction > 0 && config.mask_fraction <= 1)) {
    fail("data.mask_fraction is {}; expected more than 0 and at most 1", config.mask_fraction);
  }
  const double share = config.mask_fraction * static_cast<double>(shape.time);
  masked_ = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::llround(share)));
}

void Masked::mask_row(Draws draws, std::int32_t* tokens, std::int32_t* targets) const {
  const auto words = static_cast<std::uint32_t>(windows_.vocabulary());
  auto wanted = static_cast<std::uint32_t>(masked_), left = static_cast<std::uint32_t>(shape_.time);
  for (std::int64_t t = 0; t < shape_.time; ++t, --left) {  // selection sampling: exactly `masked_`, all sets alike
    targets[t] = kIgnored;
    if (draws.below(left) >= wanted) continue;
    --wanted;
    targets[t] = tokens[t];
    const std::uint32_t tenth = draws.below(10);
    if (tenth < 8) {
      tokens[t] = special().mask;
    } else if (tenth == 8) {
      tokens[t] = static_cast<std::int32_t>(draws.below(words));
    }
  }
}

void Masked::fill(std::uint64_t index, std::uint64_t seed, Batch& batch) const {
  windows_.fill(index, seed, batch);
  for (std::int64_t row = 0; row < shape_.batch; ++row) {
    mask_row(Draws(seed, kTrainingStream, index, static_cast<std::uint32_t>(row)),
             batch.tokens.data() + row * shape_.time, batch.targets.data() + row * shape_.time);
  }
}

void Masked::fill_evaluation(std::int64_t index, Batch& batch) const {
  windows_.fill_evaluation(index, batch);
  for (std::int64_t row = 0; row < shape_.batch; ++row) {
    std::int32_t* const targets = batch.targets.data() + row * shape_.time;
    if (targets[0] == kIgnored) break;  // no window here, nor in later rows
    mask_row(Draws(0, kEvaluationStream, static_cast<std::uint64_t>(index), static_cast<std::uint32_t>(row)),
             batch.tokens.data() + row * shape_.time, targets);
  }
}

SpecialTokens Masked::special() const { return {.mask = static_cast<std::int32_t>(windows_.vocabulary())}; }

std::string Masked::describe() const {
  return fmt::format("{}; {} of {} tokens masked", windows_.describe(), masked_, shape_.time);
}

std::string Masked::decode(std::span<const std::int32_t> tokens) const {
  std::string text;
  for (std::size_t begin = 0; begin <= tokens.size();) {
    const auto mask = std::find(tokens.begin() + static_cast<std::ptrdiff_t>(begin), tokens.end(), special().mask);
    const auto end = static_cast<std::size_t>(mask - tokens.begin());
    text += windows_.decode(tokens.subspan(begin, end - begin));
    if (mask != tokens.end()) text += "<mask>";
    begin = end + 1;
  }
  return text;
}

}  // namespace norma
