// Parity of signs in noise: a classification of vectors whose best accuracy and loss are known.
//
// Each of `bits` bits is the product of the signs of two hidden coordinates; a class is all bits together. Coordinates
// are +s or -s plus a standard normal, others are noise alone; all are brought to variance 1 and turned by one fixed
// rotation. No linear classifier does better than chance. With p = Phi(s), the chance that a coordinate keeps its sign,
// a bit is right with p^2 + (1 - p)^2 at best, and the best loss of a bit is the entropy of (1 + tanh(s x) tanh(s
// y))/2.
#pragma once

#include "data/generated.h"

namespace norma {

class Parity final : public GeneratedSource {
 public:
  Parity(const DataConfig& config, const BatchShape& shape);

  std::int64_t vocabulary() const override { return 0; }
  std::int64_t classes() const override { return std::int64_t{1} << bits_; }
  std::map<std::string, std::int64_t> sizes() const override;
  std::optional<double> optimum() const override;
  std::optional<double> best_accuracy() const override;
  std::string describe() const override;

 protected:
  void clear(Batch& batch) const override;
  void write(Draws& draws, std::int64_t row, Batch& batch) const override;

 private:
  std::int64_t features_, bits_;
  double separation_;
  std::vector<float> rotation_;  // [features, features], rows are orthonormal
};

}  // namespace norma
