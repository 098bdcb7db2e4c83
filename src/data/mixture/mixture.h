// Points in the plane around a few centres: a distribution whose density, hence score, is known exactly. A point is an
// image of one pixel with two channels; its class is its centre. Centres lie evenly on a circle around 0 so that a
// coordinate has variance 1.
#pragma once

#include "data/generated.h"
#include "norma/data/gaussian_mixture.h"

namespace norma {

class Mixture final : public GeneratedSource {
 public:
  Mixture(const DataConfig& config, const BatchShape& shape);

  std::int64_t vocabulary() const override { return 0; }
  std::int64_t classes() const override { return mixture_.components(); }
  std::map<std::string, std::int64_t> sizes() const override;
  std::optional<double> optimum() const override { return std::nullopt; }
  std::string describe() const override;
  const GaussianMixture* mixture() const override { return &mixture_; }

 protected:
  void clear(Batch& batch) const override;
  void write(Draws& draws, std::int64_t row, Batch& batch) const override;

 private:
  GaussianMixture mixture_;
};

}  // namespace norma
