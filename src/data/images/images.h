// Classification of images from files. Every training image comes once an epoch in an order keyed by seed and epoch, a
// channel minus its mean over its deviation, both of the training part alone. What is random in a training image (a
// crop, a flip, a hole, a second image mixed in) is a function of seed, batch and row, so that a run resumes exactly.
#pragma once

#include "data/draws.h"
#include "data/images/image_set.h"
#include "norma/data/images.h"
#include "norma/data/source.h"

namespace norma {

class Images final : public Source {
 public:
  Images(const DataConfig& config, const BatchShape& shape);

  void fill(std::uint64_t index, std::uint64_t seed, Batch& batch) const override;
  std::int64_t evaluation_batches() const override { return evaluation_batches_; }
  void fill_evaluation(std::int64_t index, Batch& batch) const override;
  std::int64_t vocabulary() const override { return 0; }
  std::int64_t classes() const override { return classes_; }
  std::vector<std::string> labels() const override;
  std::int64_t held_out_records() const override { return validation_.count(); }
  std::map<std::string, std::int64_t> sizes() const override;
  const ImageReading* images() const override { return &reading_; }
  std::optional<double> optimum() const override { return std::nullopt; }
  std::string describe() const override;

 private:
  void read(const DataConfig& config);
  void hold_out(const DataConfig& config);  // the last share
  void check_variation() const;
  void check_labels(const DataConfig& config);
  void measure();
  void clear(Batch& batch) const;
  void write(const ImageSet& set, std::int64_t image, std::int64_t row, Batch& batch) const;
  void vary(Draws& draws, float* image) const;
  void mix(std::uint64_t index, std::uint64_t seed, Batch& batch) const;
  Shape image_shape() const { return {shape_.batch, training_.height, training_.width, training_.channels}; }

  BatchShape shape_;
  std::string name_;
  std::int64_t crop_, hole_;  // pixels that an image is moved by at most; side of a square that is blanked
  bool flip_;
  double mixup_;  // shares of second images are drawn from Beta(mixup, mixup); 0: none are mixed in
  ImageSet training_, validation_;
  std::int64_t classes_ = 0, evaluation_batches_ = 0;
  ImageReading reading_;
};

}  // namespace norma
