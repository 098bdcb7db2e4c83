#include "data/pairs.h"

#include <algorithm>

#include "norma/core/error.h"

namespace norma {

SpecialTokens pair_marks(std::int64_t base) {
  const auto first = static_cast<std::int32_t>(base);
  return {.padding = first, .beginning = first + 1, .end = first + 2};
}

void clear_pairs(const BatchShape& shape, const SpecialTokens& marks, Batch& batch) {
  const auto fill = [&](const char* name, const Shape& cells, std::int32_t id) {
    std::ranges::fill(batch.ids(name, cells), id);
  };
  fill("tokens", {shape.batch, shape.time}, marks.padding);
  fill("targets", {shape.batch, shape.time}, kIgnored);
  fill("source", {shape.batch, shape.source_time}, marks.padding);
  // A row without a pair still has one token, so that attention has something to look at.
  fill("source_lengths", {shape.batch}, 1);
  fill("lengths", {shape.batch}, 1);
}

std::int32_t* pair_source(const BatchShape& shape, std::int64_t row, Batch& batch) {
  return batch.ids("source").data() + row * shape.source_time;
}

std::int32_t* pair_answer(const BatchShape& shape, std::int64_t row, Batch& batch) {
  return batch.ids("targets").data() + row * shape.time;
}

void end_pair(const BatchShape& shape, const SpecialTokens& marks, std::int64_t row, std::int64_t source_length,
              std::int64_t answer_length, Batch& batch) {
  NORMA_ASSERT(source_length < shape.source_time && answer_length < shape.time);
  std::int32_t* const answer = pair_answer(shape, row, batch);
  std::int32_t* const read = batch.ids("tokens").data() + row * shape.time;
  read[0] = marks.beginning;
  std::copy_n(answer, answer_length, read + 1);
  answer[answer_length] = marks.end;
  pair_source(shape, row, batch)[source_length] = marks.end;
  batch.ids("source_lengths")[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(source_length + 1);
  batch.ids("lengths")[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(answer_length + 1);
}

}  // namespace norma
