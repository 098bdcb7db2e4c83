// How near samples of a denoiser are to its data, without any model of others: exactly where the distribution is known,
// otherwise through the eyes of a classifier that norma has trained itself.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "norma/data/gaussian_mixture.h"
#include "norma/train/denoise.h"

namespace norma {

// A number and its 95 % interval, by bootstrap over samples.
struct Resampled {
  double value = 0, low = 0, high = 0;
};

// Of points, against a mixture of Gaussians.
struct MixtureDistance {
  // 2 E|x - y| - E|x - x'| - E|y - y'| over pairs, with y as many fresh draws of the mixture: 0 where both are alike.
  Resampled energy;
  double floor = 0;       // the same of two sets of fresh draws: what chance alone gives
  double mean_error = 0;  // largest difference between the means of a coordinate
  double variance_error = 0;
  std::int64_t empty_centres = 0;  // to which no sample is nearest
};
MixtureDistance distance_to_mixture(std::span<const float> samples, const GaussianMixture& mixture,
                                    std::uint64_t seed = 1);

// |m1 - m2|^2 + tr(C1 + C2 - 2 (C1^1/2 C2 C1^1/2)^1/2) between the means and covariances of features, rows of `width`
// numbers (Heusel et al. 2017, arXiv 1706.08500).
double frechet_distance(std::span<const double> a, std::span<const double> b, std::int64_t width);

// The distance between the distributions that two sets of rows were drawn from. Sets of n rows are further apart than
// that, by about as much as sets drawn anew from them are further apart than they are: so much is taken off, and the
// interval is the bootstrap's turned around `plain` (Efron, Tibshirani 1993, sections 10.2 and 13.4). It may be
// negative. Throws Error for fewer than two rows and for rows that are not finite.
struct FrechetEstimate {
  Resampled distance;
  double plain = 0;  // of the rows as they are
};
FrechetEstimate estimate_frechet(std::span<const double> a, std::span<const double> b, std::int64_t width,
                                 std::uint64_t seed = 1);

// Between features of samples and of held-out images, where the classifier's head reads them.
struct FrechetQuality {
  Resampled distance;
  double plain = 0;  // as published distances are: without what is taken off for few samples
  double floor = 0;  // plain, between two halves of the held-out images
  std::int64_t samples = 0, held_out = 0, features = 0;
  double agreement = std::numeric_limits<double>::quiet_NaN();  // share of samples that the classifier takes for the
                                                                // class that was asked for; NaN: none was
};
// Throws Error where the classifier reads images of another size, for fewer than two samples, and for a classifier
// whose features are not finite.
FrechetQuality frechet_quality(const DenoisedSamples& samples, const TrainedModel& classifier, std::uint64_t seed = 1);

}  // namespace norma
