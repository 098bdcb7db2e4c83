// What all generated tasks share: rows drawn one by one from a stream named after the task, training and evaluation
// apart. A task only says how to write one row.
#pragma once

#include <string>

#include "data/draws.h"
#include "norma/data/source.h"

namespace norma {

class GeneratedSource : public Source {
 public:
  void fill(std::uint64_t index, std::uint64_t seed, Batch& batch) const final;
  std::int64_t evaluation_batches() const final { return evaluation_batches_; }
  void fill_evaluation(std::int64_t index, Batch& batch) const final;

 protected:
  GeneratedSource(const std::string& name, const BatchShape& shape, std::int64_t evaluation_batches);

  // Gives every array its size.
  virtual void clear(Batch& batch) const = 0;
  virtual void write(Draws& draws, std::int64_t row, Batch& batch) const = 0;

  const BatchShape& shape() const { return shape_; }

 private:
  void fill_from(std::uint64_t stream, std::uint64_t index, std::uint64_t seed, Batch& batch) const;

  std::uint64_t training_stream_, evaluation_stream_;
  BatchShape shape_;
  std::int64_t evaluation_batches_;
};

// Tasks of one side: a row is `time` tokens and `time` targets.
class GeneratedRows : public GeneratedSource {
 protected:
  using GeneratedSource::GeneratedSource;

  virtual void write_row(Draws& draws, std::int32_t* tokens, std::int32_t* targets) const = 0;

 private:
  void clear(Batch& batch) const final;
  void write(Draws& draws, std::int64_t row, Batch& batch) const final;
};

// `given`, or `standard` where a configuration left 0; throws Error outside [least, most].
std::int64_t parameter(const char* name, std::int64_t given, std::int64_t standard, std::int64_t least,
                       std::int64_t most);

}  // namespace norma
