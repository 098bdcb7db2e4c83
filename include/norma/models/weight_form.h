// How a weight that a layer uses is made from the tensor that is learned.
#pragma once

#include <cstdint>
#include <optional>

#include "norma/models/parameters.h"
#include "norma/schemes/scheme.h"

namespace norma {

// WeightForm (schemes/scheme.h) is one of
//   plain         W
//   standardised  gain (W - mean) / sqrt(n var + eps), mean and variance over the n numbers that make one output (Qiao
//   et
//                 al. 2019, arXiv 1903.10520; scaled by n as Brock et al. 2021, arXiv 2101.08692)
//   weight_norm   gain W / |W|, the length of what makes one output (Salimans, Kingma 2016, arXiv 1602.07868)
//   spectral      gain W / s, s the largest singular value, as kPowerIterations find it (Miyato et al. 2018, arXiv
//                 1802.05957); the gain is not learned. It starts anew each time and keeps nothing between steps, so
//                 that training and evaluation see the same weights.
constexpr int kPowerIterations = 8;

// How W and its gain start, of a layer that reads `inputs` numbers and would start plain with `deviation`, or with
// `given`, and `factor` times more. What is not plain starts with the size it would have then; a standardised weight,
// which knows no deviation but a given one, with a variance of factor^2 / inputs. A factor of 0 is the gain's alone: a
// weight of zeros would have no direction.
struct FormedStart {
  double weight = 1, gain = 1;
};
FormedStart formed_start(WeightForm form, std::int64_t inputs, double deviation, std::optional<double> given,
                         double factor);

// Makes it of W[.., outputs]. A gain [outputs] that is learned is named "weight_gain" and stands beside W in the open
// scope; it starts as `gain` says.
Wire formed(Parameters& parameters, Wire weight, WeightForm form, ParameterSpec gain);

}  // namespace norma
