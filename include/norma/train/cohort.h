// Models that train side by side: one plan, one session, and for each member its settings, its detector and its fate.
#pragma once

#include <cstdint>
#include <deque>
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
#include "norma/train/feeder.h"
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
  std::optional<double> evaluation_margin;    // half of its 99.9 % interval over held-out batches; none: a single one
  std::optional<double> evaluation_accuracy;  // where logits are small enough to be looked at every time
  std::optional<double> evaluation_records;   // how many answers that is of
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
// Of one member: ids that it reads, or rows where it reads numbers.
std::int64_t tokens_per_step(const RunConfig& config);
// How the training step of a resolved configuration is built.
StepOptions step_options(const RunConfig& config);

struct CohortOptions {
  // How many steps are taken before the host sees the first of them. What it decides of a step (divergence, recovery,
  // snapshots) counts from so many steps later on, at the same step in every run.
  int lag = 0;
  int threads = 0;  // to begin with; 0: as the configuration says
};

class Cohort {
 public:
  // Resolves vocabulary and classes of the model from the data.
  Cohort(const RunConfig& config, std::shared_ptr<const Source> source, CohortOptions options = {});

  const RunConfig& config() const { return config_; }  // with everything resolved
  int members() const { return session_->members(); }
  int active_members() const;
  std::int64_t step() const { return step_; }  // steps taken
  std::int64_t observed_step() const { return step_ - static_cast<std::int64_t>(pending_.size()); }
  const MemberState& member(int index) const { return states_[static_cast<std::size_t>(index)]; }
  const std::vector<TrainConfig>& settings() const { return settings_; }
  std::int64_t tokens_per_step() const { return norma::tokens_per_step(config_); }  // of one member
  double flops_per_step() const;                                                    // of one member
  std::int64_t parameters() const;                                                  // of one member
  std::int64_t memory_bytes() const;                                                // of all members and threads
  const TrainingStep& training_step() const { return plan_; }
  Session& session() { return *session_; }
  int threads() const { return session_->threads(); }
  void use_threads(int threads);  // from the next step on; changes no bit

  // One step of every active member, then a look at the step that the lag has come to, or at all that are left; so too
  // after the last step of the run. Returns what happened.
  enum class Look { by_lag, at_all };
  std::vector<MemberEvent> train_step(Watching watching = Watching::yes, Look look = Look::by_lag);
  // Looks at the oldest steps until at most so many are unseen.
  std::vector<MemberEvent> look_back(int most_unseen = 0);
  // The two halves of it. Probes along the stream cost nothing in steps that do not watch; a member whose loss is in
  // doubt is watched all the same.
  void advance(Watching watching = Watching::yes);
  std::vector<MemberEvent> observe();  // the oldest step that nobody has looked at

  // Mean loss and accuracy over the held-out batches for every member, in its state. Frozen members keep their last.
  void evaluate();
  // Gives back the memory of evaluation; the next one takes it again.
  void release_evaluation() { evaluation_.reset(); }
  // Throws Error where the device has no room for an evaluation beside the training, hours before it would fail.
  void require_room_for_evaluation() const;

  // Of the last step, as far as it was watched and observed; nothing of a step that was taken again to find a bad wire.
  std::vector<ProbeValue> probes(int member);

  // Everything that exact resumption needs, to be written as one safetensors file before the next step: tensors are
  // read from the session when their turn comes.
  std::vector<TensorData> checkpoint_tensors();
  Metadata checkpoint_metadata() const;
  // Throws Error when the file is damaged or belongs to another model; nothing is changed then.
  void restore(const SafetensorsFile& file);

 private:
  enum class Readable { nothing, layers, everything };
  struct Snapshot {
    std::int64_t step = 0;
    std::vector<std::byte> bytes;  // empty: there is none
  };
  // What a step left for the host to look at.
  struct Observation {
    struct Member {
      bool taken = false;  // frozen members take no step
      bool judged = true;  // not: it went on from what recovery has undone
      double loss = 0, gradient_norm = 0, lr = 0;
      Snapshot snapshot = {};  // of a step that has gone on before it was judged
    };
    std::int64_t step = 0;
    Watching watching = Watching::no;
    std::vector<Member> members;
  };
  struct Handles {
    Handle control, clip, first, ema_take, loss, gradient_norm;
    std::vector<Handle> persistent;  // beside persistent_
  };

  static Handles handles_of(const Session& session, const std::vector<std::string>& persistent);
  void stage_controls(Observation& step, bool first, bool last);
  void stage_batch(Feeder& feeder, std::int64_t index);
  std::vector<std::uint64_t> weight_seeds() const;
  void profile();
  void start_means();
  EvaluationStep evaluation_step() const;
  void prepare_evaluation();
  void evaluate_means();
  bool takes_snapshot(std::int64_t step) const;
  void judge(int member, const Observation& seen, std::vector<MemberEvent>& events);
  std::optional<MemberEvent> recover(int member, std::int64_t step, Astray why);
  MemberEvent freeze(int member, std::int64_t step, Astray why);
  std::optional<NonFinite> first_bad_parameter(int member);
  std::optional<NonFinite> first_bad_wire(int member, std::int64_t step);
  Snapshot snapshot(int member);  // none where a parameter is not finite
  void roll_back(int member);

  RunConfig config_;
  std::vector<TrainConfig> settings_;
  std::vector<std::uint64_t> data_seeds_;
  int lag_;
  bool reads_later_ = false;  // losses are read when their step is looked at
  std::shared_ptr<const Source> source_;
  TrainingStep plan_;
  std::unique_ptr<Session> session_;
  Feeder feeder_;
  struct Evaluation {
    std::unique_ptr<Session> session;
    Feeder feeder;
  };
  std::unique_ptr<Evaluation> evaluation_;
  std::vector<MemberState> states_;
  std::vector<Detector> detectors_;
  std::vector<Snapshot> snapshots_;
  std::vector<Readable> readable_;       // what probes of each member the last step left
  std::vector<std::string> persistent_;  // parameters and states, sorted
  Handles handles_;
  mutable std::optional<double> flops_;  // from the first question on
  std::int64_t step_ = 0;
  std::int64_t staged_ahead_ = -1;   // index of a batch that was made while the device was at work; -1: none
  std::deque<Observation> pending_;  // steps taken and not looked at, oldest first
};

// The name of a tensor in a checkpoint: as in the model, or "member.2.<name>" where there are several.
std::string checkpoint_name(std::string_view tensor, int member, int members);

}  // namespace norma
