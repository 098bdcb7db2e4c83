// What a run will take, from its plans alone: parameters, operations, memory by tensor, the least time of a step.
// Nothing runs and no weight is made.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "norma/models/budget.h"
#include "norma/train/config.h"

namespace norma {

struct PlannedTensor {
  std::string name, type, kind;
  std::int64_t bytes = 0;
};

// In bytes; see RunMemory.
struct PlannedMemory {
  std::map<std::string, std::int64_t> by_kind = {};  // of one member: parameters, states, inputs, constants
  std::int64_t activations = 0;                      // of one member, as laid out
  std::int64_t least_activations = 0;                // no layout needs less
  std::int64_t one_member = 0;
  std::int64_t training = 0;
  std::int64_t thread_scratch = 0;
  std::int64_t evaluation = 0;
  std::int64_t judging = 0;
  std::int64_t snapshots = 0;
  std::int64_t peak = 0;     // of all these: judging takes the place of evaluation
  std::int64_t program = 0;  // plans and data in this process
  std::vector<PlannedTensor> largest = {};
};

// What each kernel of a step does at least, on one member.
struct StepCost {
  double flops = 0, bytes = 0;
};

struct RunPlan {
  RunConfig config = {};  // resolved
  std::int64_t members = 0;
  std::int64_t threads = 0;
  std::int64_t kernels = 0;  // of a step
  Budget budget = {};
  PlannedMemory memory = {};
  double bytes_per_step = 0;         // least traffic, of one member
  std::vector<StepCost> costs = {};  // of the kernels that were planned
  double planned_share = 1;          // of a stack too deep to plan, the share of its kernels that `costs` has

  double tokens_per_step() const;  // of one member, one accumulated batch; counted_unit() says of what
};

// Throws Error for what cannot be built, and for a run whose weights, gradients and optimiser states alone are more
// than this machine's memory. Stacks beyond kDeepestPlan are planned at depths up to it and continued as budgets are.
constexpr std::int64_t kDeepestPlan = 512;
RunPlan plan_run(const RunConfig& given);

// The least time of a step of all members at these speeds, kernel after kernel. Operations and bytes a second.
double least_seconds(const RunPlan& plan, double flops, double bytes);

}  // namespace norma
