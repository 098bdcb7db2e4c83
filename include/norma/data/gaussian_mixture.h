// A mixture of Gaussians of one deviation, and what can be known of a sample of it behind noise: the exact posterior,
// hence the best that any denoiser can do.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "norma/data/diffusion.h"

namespace norma {

struct GaussianMixture {
  std::int64_t dimensions = 0;
  std::vector<double> means = {};          // [components, dimensions]; components are equally likely
  std::vector<std::int32_t> classes = {};  // of each component
  double deviation = 1;                    // of every number around its mean

  std::int64_t components() const { return static_cast<std::int64_t>(classes.size()); }

  // Of the clean sample behind noised = alpha x + sigma e: its mean, and the mean over dimensions of its variance.
  struct Posterior {
    std::vector<double> mean;
    double variance = 0;
  };
  // Given its class, where there is one to be given.
  Posterior posterior(std::span<const double> noised, double alpha, double sigma,
                      std::optional<std::int32_t> given = {}) const;
};

// A mean over draws and its standard error.
struct Estimated {
  double value = 0, error = 0;
};

// The least mean squared error of a model that learns as `config` says: over all timesteps alike, and over samples
// whose class is told or hidden. Over draws of a stream of its own, always the same.
Estimated least_denoising_loss(const GaussianMixture& mixture, const DiffusionConfig& config, bool has_classes);

}  // namespace norma
