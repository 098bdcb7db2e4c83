#include "norma/train/memory.h"

#include <algorithm>

#include "norma/core/machine.h"
#include "norma/train/judge.h"

namespace norma {

std::int64_t RunMemory::peak() const {
  return training.bytes() + std::max(evaluation.bytes(), judging.bytes()) + snapshots;
}

RunMemory run_memory(const RunConfig& config, const TrainingStep& step, bool evaluates) {
  const auto members = static_cast<std::int64_t>(member_configs(config).size());
  const std::int64_t threads = config.train.threads > 0 ? config.train.threads : machine().cores;
  RunMemory memory{.training = {step.plan, members, threads}};
  if (config.detect.recovery == Recovery::roll_back) {
    for (const Role role : {Role::parameter, Role::state}) {
      for (const std::string& name : step.plan->slot_names(role))
        memory.snapshots += step.plan->slot(name).type.bytes() * members;
    }
  }
  if (evaluates) {
    const bool logits = logits_are_small(config.model);
    const bool narrow = config.train.precision == Precision::bf16;
    memory.evaluation = {build_evaluation_step(config.model, logits, &device_backend(config), narrow).plan, members,
                         threads};
    memory.judging = {examination_plan(config.model, device_backend(config)).plan, 1, threads};
  }
  return memory;
}

}  // namespace norma
