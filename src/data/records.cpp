#include "data/records.h"

#include <algorithm>

#include "data/permutation.h"
#include "norma/core/error.h"

namespace norma {

void RecordSource::set_counts(std::int64_t training, std::int64_t validation) {
  training_ = training;
  validation_ = validation;
  const std::int64_t all = (validation + shape_.batch - 1) / shape_.batch;
  evaluation_batches_ = evaluation_batches_ == 0 ? all : std::min(all, evaluation_batches_);
}

void RecordSource::fill(std::uint64_t index, std::uint64_t seed, Batch& batch) const {
  clear(batch);
  const auto records = static_cast<std::uint64_t>(training_);
  for (std::int64_t row = 0; row < shape_.batch; ++row) {
    const std::uint64_t sample = index * static_cast<std::uint64_t>(shape_.batch) + static_cast<std::uint64_t>(row);
    const Permutation permutation(records, seed, sample / records);
    write(Part::training, static_cast<std::int64_t>(permutation(sample % records)), row, batch);
  }
}

std::int64_t RecordSource::evaluation_record(std::int64_t index, std::int64_t row) const {
  NORMA_ASSERT(index >= 0 && index < evaluation_batches_ && row >= 0 && row < shape_.batch);
  const std::int64_t shown = std::min(validation_, evaluation_batches_ * shape_.batch);
  const std::int64_t place = index * shape_.batch + row;
  return place < shown ? place * validation_ / shown : -1;
}

void RecordSource::fill_evaluation(std::int64_t index, Batch& batch) const {
  clear(batch);
  for (std::int64_t row = 0; row < shape_.batch; ++row) {
    const std::int64_t record = evaluation_record(index, row);
    if (record >= 0) write(Part::validation, record, row, batch);
  }
}

}  // namespace norma
