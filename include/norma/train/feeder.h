// Writes what a model reads into a session: batches, the values of schedules, dropout and label smoothing. The only
// place that knows the names of these inputs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "norma/data/source.h"
#include "norma/device/session.h"
#include "norma/models/model.h"

namespace norma {

class Feeder {
 public:
  // The session must outlive it. Inputs that the plan does not have are passed over.
  Feeder(Session& session, const ModelConfig& model, std::vector<Schedule> schedules);

  // Training batch `index` of each active member's own order. Neighbours with one seed see the same batch; it is made
  // once.
  void batch(const Source& source, std::uint64_t index, std::span<const std::uint64_t> seeds);
  // Held-out batch `index`, the same for every active member.
  void evaluation_batch(const Source& source, std::int64_t index);
  // Ids as they are; sequences are whole where the batch says nothing of their lengths.
  void write(const Batch& batch, int member);
  const Batch& last() const { return batch_; }  // that came from a source
  double counted_targets() const;               // of that

  // The values of all schedules for every member.
  void schedules(double step, double steps);

  // What dropout draws follows from seed and batch.
  void dropout(int member, double rate, std::int64_t seed, std::int64_t index);
  void smoothing(int member, double share);

 private:
  Session& session_;
  std::vector<std::int32_t> whole_;  // lengths of sequences that are
  struct Ids {
    Handle input;
    std::vector<std::int32_t> Batch::*ids;
  };
  std::vector<Ids> ids_;
  Handle lengths_, dropout_, dropout_key_, smoothing_;
  std::vector<Schedule> schedules_;
  std::vector<Handle> schedule_inputs_;  // beside them; empty where the plan has none
  Batch batch_;
};

}  // namespace norma
