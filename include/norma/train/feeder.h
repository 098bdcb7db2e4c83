// Writes what a model reads into a session: the tensors of a batch by name, the values of schedules, dropout and label
// smoothing.
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
  // Rows are whole where the batch says nothing of their lengths. Throws Error for a tensor that the model reads and
  // the batch lacks or has in another shape.
  void write(const Batch& batch, int member);
  const Batch& last() const { return batch_; }  // that came from a source
  double counted() const;                       // targets of that

  // The values of all schedules for every member.
  void schedules(double step, double steps);

  // What dropout draws follows from seed and batch.
  void dropout(int member, double rate, std::int64_t seed, std::int64_t index);
  void smoothing(int member, double share);

 private:
  Session& session_;
  struct Input {
    InputSpec spec;
    Handle handle;
    Batch::Ids whole = {};  // lengths of rows that are
  };
  std::string family_;
  std::vector<Input> inputs_;
  std::vector<InputSpec> specs_;  // of those
  void write_mixture(const Batch& batch, int member);

  Handle dropout_, dropout_key_, smoothing_, mixed_targets_, mixture_;
  std::vector<Schedule> schedules_;
  std::vector<Handle> schedule_inputs_;  // beside them; empty where the plan has none
  Batch batch_;
};

// Targets that count towards the loss, of all that a model is asked; where it is asked for numbers, its rows.
double counted_targets(const std::vector<InputSpec>& inputs, const Batch& batch);

// Throws Error where no target of a training batch is counted: its loss would be 0 / 0, which no scheme is to blame
// for.
void require_targets(const Batch& batch, const std::vector<InputSpec>& inputs, std::uint64_t index);

// Throws Error for a tensor that the model reads and the batch lacks or has in another shape.
void check_batch(const Batch& batch, const ModelConfig& model);

// Puts lengths of whole rows where a batch says nothing of them.
void add_whole_lengths(const std::vector<InputSpec>& inputs, Batch& batch);

}  // namespace norma
