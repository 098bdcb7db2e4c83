// Which paths the gradient takes from the loss to the embedding (Veit et al. 2016): 2^n of them, one for each choice of
// branches that it goes through.
#pragma once

#include <cstdint>
#include <vector>

#include "norma/lab/subject.h"

namespace norma {

struct PathLengths {
  // By length k = 0 .. n and member: share of the gradient's mass, binomial(n, k) times the mean norm of the gradient
  // along single paths that go through k branches and through the skip of every other sublayer.
  std::vector<std::vector<double>> share;
  std::vector<double> mean_length;  // by member
};

// Throws NotBuiltError for schemes whose sublayers are not a chain: several streams, or one formula for a whole layer.
PathLengths measure_path_lengths(const Subject& subject, int samples_per_length = 8);

}  // namespace norma
