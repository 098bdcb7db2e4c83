// Shapes in noise: a classification of images whose best accuracy and loss are known.
//
// An image is one of a few 5 x 5 shapes at a place drawn at random, plus a standard normal for every pixel. All shapes
// have the same length `contrast` as vectors, so the chance of class k given the image x is proportional to the sum of
// exp(<x, shape k at p>) over places p. Its mean largest value is the best accuracy, its mean entropy the best loss;
// both are taken over images drawn once from a stream of their own.
#pragma once

#include <mutex>

#include "data/generated.h"
#include "norma/data/gaussian_mixture.h"

namespace norma {

class Shapes final : public GeneratedSource {
 public:
  Shapes(const DataConfig& config, const BatchShape& shape);

  std::int64_t vocabulary() const override { return 0; }
  std::int64_t classes() const override { return classes_; }
  std::map<std::string, std::int64_t> sizes() const override;
  std::optional<double> optimum() const override { return best().loss; }
  std::optional<double> best_accuracy() const override { return best().accuracy; }
  std::string describe() const override;
  // Every shape at every place, around which images lie.
  const GaussianMixture* mixture() const override;

 protected:
  void clear(Batch& batch) const override;
  void write(Draws& draws, std::int64_t row, Batch& batch) const override;

 private:
  struct Best {
    double accuracy = 0, accuracy_error = 0, loss = 0;
  };
  const Best& best() const;
  std::int32_t draw(Draws& draws, float* image) const;      // [size, size, channels]; its class
  std::vector<double> posterior(const float* image) const;  // of each class
  Shape image_shape() const { return {shape().batch, size_, size_, channels_}; }

  std::int64_t classes_, size_, channels_;
  double contrast_;
  std::vector<float> templates_;  // [classes, 5, 5], of length `contrast` over all channels
  mutable std::once_flag known_;
  mutable Best best_;
  mutable std::once_flag mixed_;
  mutable GaussianMixture mixture_;
};

}  // namespace norma
