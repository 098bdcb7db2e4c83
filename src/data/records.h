// Batches of records (pairs of sentences, labelled sentences): every training record once an epoch in an order keyed by
// seed and epoch; held-out records spread evenly over the evaluation batches. A task only says how to write one record.
#pragma once

#include "norma/data/source.h"

namespace norma {

enum class Part { training, validation };

class RecordSource : public Source {
 public:
  void fill(std::uint64_t index, std::uint64_t seed, Batch& batch) const final;
  std::int64_t evaluation_batches() const final { return evaluation_batches_; }
  void fill_evaluation(std::int64_t index, Batch& batch) const final;
  std::int64_t held_out_records() const final { return validation_; }
  std::optional<double> optimum() const final { return std::nullopt; }

 protected:
  RecordSource(const BatchShape& shape, std::int64_t wanted_evaluation_batches)
      : shape_(shape), evaluation_batches_(wanted_evaluation_batches) {}

  // To be called once, when the records are known.
  void set_counts(std::int64_t training, std::int64_t validation);

  // Gives every array its size and what stands where there is no record.
  virtual void clear(Batch& batch) const = 0;
  virtual void write(Part part, std::int64_t record, std::int64_t row, Batch& batch) const = 0;

  const BatchShape& shape() const { return shape_; }
  // The held-out record in this row of an evaluation batch, or -1.
  std::int64_t evaluation_record(std::int64_t index, std::int64_t row) const;

 private:
  BatchShape shape_;
  std::int64_t training_ = 0, validation_ = 0, evaluation_batches_;
};

}  // namespace norma
