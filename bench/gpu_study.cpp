// The cohorts of a study on a GPU: the models that `norma study` trains there, in cohorts of several sizes.
#include <fmt/format.h>

#include "bench/gpu_case.h"

namespace norma::bench {

std::vector<GpuCase> study_cases() {
  std::vector<GpuCase> cases;
  for (const std::int64_t layers : {12, 48}) {
    const ModelConfig model{.layers = layers, .width = 64, .heads = 4, .vocabulary = 17, .batch = 8, .time = 128};
    for (const int members : {8, 16, 32, 64}) {
      for (const Precision precision : {Precision::bf16, Precision::tf32, Precision::f32})
        cases.push_back({fmt::format("study L={} d=64 T=128 B=8 x{} {}", layers, members, name_of(precision)), model,
                         members, precision});
    }
  }
  return cases;
}

}  // namespace norma::bench
