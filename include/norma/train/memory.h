// What a run keeps in memory, from its plans alone: nothing is allocated or run.
#pragma once

#include <cstdint>
#include <memory>

#include "norma/device/cpu/backend.h"
#include "norma/train/config.h"
#include "norma/train/step.h"

namespace norma {

// Tensors of one plan for all members, and scratch of its threads, in bytes.
struct SessionMemory {
  std::shared_ptr<const Plan> plan = nullptr;
  std::int64_t members = 0;
  std::int64_t threads = 0;

  std::int64_t tensors() const { return plan == nullptr ? 0 : plan->member_bytes() * members; }
  std::int64_t scratch() const { return plan == nullptr ? 0 : worker_bytes(*plan) * threads; }
  std::int64_t bytes() const { return tensors() + scratch(); }
};

// Training keeps its tensors from the first step to the end; evaluation from the first one on, until the trained model
// is judged. Of BLEU, what beam search needs is not counted.
struct RunMemory {
  SessionMemory training = {};
  SessionMemory evaluation = {};  // no plan where nothing is held out
  SessionMemory judging = {};     // the same
  std::int64_t snapshots = 0;     // for rolling back

  std::int64_t peak() const;
};

// Of a resolved configuration. `step` is its training step.
RunMemory run_memory(const RunConfig& config, const TrainingStep& step, bool evaluates);

}  // namespace norma
