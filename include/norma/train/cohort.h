// Models that train side by side: one plan, one session, and for each member its settings, its detector and its fate.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "norma/data/source.h"
#include "norma/device/session.h"
#include "norma/store/safetensors_writer.h"
#include "norma/train/config.h"
#include "norma/train/detector.h"
#include "norma/train/step.h"

namespace norma {

// Something that happened to a member: a spike, an action of the recovery policy, divergence.
struct MemberEvent {
  std::int64_t step = 0;
  int member = 0;
  std::string what;  // "diverged", "skipped", "lowered learning rate", "rolled back"
  std::string why;   // "not finite: layers.3.attn.attention, element 17 is nan"
};

struct MemberState {
  double loss = 0;  // of the last step
  double gradient_norm = 0;
  double lr = 0;
  double best_loss = 0;  // the lowest of any step
  std::optional<double> evaluation_loss, best_evaluation_loss;
  std::optional<double> evaluation_accuracy;  // where logits are small enough to be looked at every time
  bool diverged = false;
  std::int64_t diverged_at_step = 0;
  std::string diverged_because;
  std::string first_bad_wire;
  std::int64_t spikes = 0;
  double lr_factor = 1;  // what recovery made of the learning rate
  std::int64_t actions = 0;
  std::int64_t skipped_steps = 0;
};

// One number of a probe: "stream_rms" at "layers.3.attn".
struct ProbeValue {
  std::string kind, site;
  double value;
};

// Completed by what only the data knows: vocabulary, classes.
RunConfig resolve_config(RunConfig config, const Source& source);
std::int64_t tokens_per_step(const RunConfig& config);  // of one member
// How the training step of a resolved configuration is built.
StepOptions step_options(const RunConfig& config);

class Cohort {
 public:
  // Resolves vocabulary and classes of the model from the data.
  Cohort(const RunConfig& config, std::shared_ptr<const Source> source);

  const RunConfig& config() const { return config_; }  // with everything resolved
  int members() const { return session_.members(); }
  int active_members() const;
  std::int64_t step() const { return step_; }  // steps done
  const MemberState& member(int index) const { return states_[static_cast<std::size_t>(index)]; }
  const std::vector<TrainConfig>& settings() const { return settings_; }
  std::int64_t tokens_per_step() const { return norma::tokens_per_step(config_); }  // of one member
  double flops_per_step() const;                                                    // of one member
  std::int64_t parameters() const;                                                  // of one member
  std::int64_t memory_bytes() const;                                                // of all members and threads
  const TrainingStep& training_step() const { return plan_; }
  Session& session() { return session_; }

  // One step of every active member. Returns what happened. Probes along the stream cost nothing in steps that do not
  // watch; a member whose loss is in doubt is watched all the same.
  std::vector<MemberEvent> train_step(Watching watching = Watching::yes);

  // Mean loss and accuracy over the held-out batches for every member, in its state. Frozen members keep their last.
  void evaluate();
  // Gives back the memory of evaluation; the next one takes it again.
  void release_evaluation() { evaluation_.reset(); }

  // Of the last step, as far as it was watched; nothing of a step that was taken again to find a bad wire.
  std::vector<ProbeValue> probes(int member);

  // Everything that exact resumption needs, to be written as one safetensors file. The tensors are views of the
  // session.
  std::vector<TensorData> checkpoint_tensors();
  Metadata checkpoint_metadata() const;
  // Throws Error when the file is damaged or belongs to another model; nothing is changed then.
  void restore(const SafetensorsFile& file);

 private:
  enum class Readable { nothing, layers, everything };
  struct Snapshot {
    std::int64_t step = 0;
    std::vector<std::byte> bytes;
  };

  void write_controls(bool first, bool last);
  void write_schedules();
  void write_noise(Session& session, std::int64_t index);
  void profile();
  void load_batch(Session& session, std::uint64_t index);
  void load_evaluation_batch(Session& session, std::int64_t index);
  void write_batch(Session& session, int member);
  void write_number(Session& session, const std::string& input, double value, int member);
  double number(Session& session, const std::string& output, int member, std::size_t index = 0);
  void judge(int member, std::vector<MemberEvent>& events);
  std::optional<MemberEvent> recover(int member, Astray why);
  MemberEvent freeze(int member, Astray why);
  std::optional<NonFinite> first_bad_parameter(int member);
  std::optional<NonFinite> first_bad_wire(int member);
  void take_snapshot(int member);

  RunConfig config_;
  std::vector<TrainConfig> settings_;
  std::shared_ptr<const Source> source_;
  TrainingStep plan_;
  Session session_;
  std::unique_ptr<Session> evaluation_;
  std::vector<MemberState> states_;
  std::vector<Detector> detectors_;
  std::vector<Snapshot> snapshots_;
  std::vector<Readable> readable_;       // what probes of each member the last step left
  std::vector<std::string> persistent_;  // parameters and states, sorted
  std::int64_t step_ = 0;
  Batch batch_;
};

// The name of a tensor in a checkpoint: as in the model, or "member.2.<name>" where there are several.
std::string checkpoint_name(std::string_view tensor, int member, int members);

}  // namespace norma
