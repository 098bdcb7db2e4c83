#include "data/generated.h"

#include "norma/core/error.h"

namespace norma {
namespace {

constexpr std::int64_t kUsualEvaluationBatches = 8;

}  // namespace

GeneratedSource::GeneratedSource(const std::string& name, const BatchShape& shape, std::int64_t evaluation_batches)
    : training_stream_(hash_name("data." + name)),
      evaluation_stream_(hash_name("data." + name + ".evaluation")),
      shape_(shape),
      evaluation_batches_(evaluation_batches == 0 ? kUsualEvaluationBatches : evaluation_batches) {}

void GeneratedSource::fill_from(std::uint64_t stream, std::uint64_t index, std::uint64_t seed, Batch& batch) const {
  clear(batch);
  for (std::int64_t row = 0; row < shape_.batch; ++row) {
    Draws draws(seed, stream, index, static_cast<std::uint32_t>(row));
    write(draws, row, batch);
  }
}

void GeneratedSource::fill(std::uint64_t index, std::uint64_t seed, Batch& batch) const {
  fill_from(training_stream_, index, seed, batch);
}

void GeneratedSource::fill_evaluation(std::int64_t index, Batch& batch) const {
  NORMA_ASSERT(index >= 0 && index < evaluation_batches_);
  fill_from(evaluation_stream_, static_cast<std::uint64_t>(index), 0, batch);
}

void GeneratedRows::clear(Batch& batch) const {
  const Shape cells = {shape().batch, shape().time};
  batch.ids("tokens", cells);
  batch.ids("targets", cells);
}

void GeneratedRows::write(Draws& draws, std::int64_t row, Batch& batch) const {
  write_row(draws, batch.ids("tokens").data() + row * shape().time, batch.ids("targets").data() + row * shape().time);
}

std::int64_t parameter(const char* name, std::int64_t given, std::int64_t standard, std::int64_t least,
                       std::int64_t most) {
  const std::int64_t value = given == 0 ? standard : given;
  if (value < least || value > most) fail("data.{} is {}; expected {} to {}", name, value, least, most);
  return value;
}

}  // namespace norma
