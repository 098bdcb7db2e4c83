// Noise as diffusion models take it away: x_t = alpha(t) x + sigma(t) e with alpha^2 + sigma^2 = 1 and e standard
// normal. Ho, Jain, Abbeel 2020, arXiv 2006.11239; cosine: Nichol, Dhariwal 2021, arXiv 2102.09672; v: Salimans, Ho
// 2022, arXiv 2202.00512.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace norma {

// What a model answers for x_t: the noise e, the clean x, or v = alpha e - sigma x.
enum class Predicted { epsilon, x0, v };
enum class NoiseShape { linear, cosine };

std::string_view name_of(Predicted prediction);
Predicted parse_prediction(std::string_view word);  // throws Error naming the nearest
std::string_view name_of(NoiseShape shape);
NoiseShape parse_noise_shape(std::string_view word);

// The `[diffusion]` table of a configuration.
struct DiffusionConfig {
  Predicted prediction = Predicted::epsilon;
  NoiseShape schedule = NoiseShape::linear;
  std::int64_t timesteps = 1000;
  double drop = 0.1;        // share of samples whose class is hidden in training, for guidance
  bool conditional = true;  // whether the model is told the class, where the data have classes
};

class NoiseSchedule {
 public:
  // Linear: variances from 1e-4 to 0.02 of a thousand steps, in proportion for other numbers of them. Throws Error for
  // fewer than one step.
  NoiseSchedule(NoiseShape shape, std::int64_t steps);
  explicit NoiseSchedule(const DiffusionConfig& config) : NoiseSchedule(config.schedule, config.timesteps) {}

  std::int64_t steps() const { return static_cast<std::int64_t>(kept_.size()); }
  double kept(std::int64_t t) const { return kept_.at(static_cast<std::size_t>(t)); }  // alpha^2, t from 0
  double alpha(std::int64_t t) const;
  double sigma(std::int64_t t) const;

 private:
  std::vector<double> kept_;
};

// Between what models may answer, for one number. `answer` is of this prediction at (alpha, sigma).
struct Denoised {
  double clean = 0, noise = 0;
};
Denoised denoised(Predicted prediction, double answer, double noised, double alpha, double sigma);
double answer_for(Predicted prediction, double clean, double noise, double alpha, double sigma);

}  // namespace norma
