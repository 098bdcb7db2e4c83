// A training step that is measured on a GPU.
#pragma once

#include <string>
#include <vector>

#include "norma/graph/plan.h"
#include "norma/train/config.h"

namespace norma::bench {

struct GpuCase {
  std::string name;
  ModelConfig model;
  int members = 1;
  Precision precision = Precision::tf32;
  int recompute = 0;  // layers per recomputed segment
  Keep keep = Keep::all;
  std::string thing = "tokens";  // what is counted
  std::int64_t things = 0;       // of a step of one member; 0: batch by time
};

// Images and graphs: the shapes that PyTorch is measured on.
std::vector<GpuCase> family_cases();
// What a study on a GPU trains.
std::vector<GpuCase> study_cases();

}  // namespace norma::bench
