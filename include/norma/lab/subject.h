// What is analysed: a model with several members (seeds), the data it reads, and its weights.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "norma/backends/device.h"
#include "norma/data/source.h"
#include "norma/device/session.h"
#include "norma/lab/weights.h"
#include "norma/models/model.h"
#include "norma/train/feeder.h"

namespace norma {

struct Subject {
  ModelConfig model = {};                 // with vocabulary and classes resolved, without dropout
  std::shared_ptr<const Source> source;   //
  std::vector<std::uint64_t> seeds = {};  // one per member: of the order of the data
  std::shared_ptr<const Weights> weights;
  double step = 0, steps = 1;  // where in training it stands, for schedules
  int threads = 0;             // 0: all cores
  Device device = Device::automatic;
  std::function<int()> share = {};  // how many threads it may use now, asked before every run; empty: `threads`

  int threads_now() const { return share ? share() : threads; }
};

// A model at the start of training, one member per seed. Resolves vocabulary and classes from the data.
Subject initial_subject(ModelConfig model, std::shared_ptr<const Source> source, std::vector<std::uint64_t> seeds,
                        int threads = 0, Device device = Device::automatic);

// The stack whose end is the output.
StackSites last_stack(const ModelConfig& model);

// Those through which one stream goes to the output: the last one alone, or all of a U-Net. Their layers count on, and
// have these names: "down.layers.0".
std::vector<StackSites> last_stacks(const ModelConfig& model);
std::vector<std::string> layers_of_last_stacks(const ModelConfig& model);

// Independent draws for every input of the model: what theories of initialisation assume. Its sizes must be known.
std::shared_ptr<const Source> random_data(const ModelConfig& model);

// The subject's model traced with what one analysis reads, compiled, with weights loaded.
class Rig {
 public:
  struct Options {
    ModelOptions model = {};
    bool backward = false;  // what keeps activations: deep models then recompute segments
    bool wide = false;      // in double precision
    int copies = 1;         // members per member of the subject: copy c of member m is m * copies + c
  };
  using Trace = std::function<void(Graph&, const Model&)>;  // declares outputs

  Rig(const Subject& subject, const Trace& trace, const Options& options);
  Rig(const Subject& subject, const Trace& trace) : Rig(subject, trace, Options{}) {}

  Session& session() { return *session_; }
  const Plan& plan() const { return session_->plan(); }
  const std::vector<ParameterSpec>& parameters() const { return parameters_; }
  int members() const { return session_->members(); }

  // Training batch `index` of each member's own order, or held-out batch `index` for all.
  void load_batch(std::uint64_t index);
  void load_evaluation_batch(std::int64_t index);
  void run();

  // Any floating tensor as doubles.
  std::vector<double> values(std::string_view name, int member = 0) { return session_->numbers(name, member); }
  double number(std::string_view name, int member = 0, std::size_t index = 0) {
    return session_->number(name, member, index);
  }
  void write(std::string_view name, double value, int member) { session_->stage_number(name, member, value); }
  void write(std::string_view name, std::span<const double> values, int member);
  double counted_targets() const { return feeder_->counted(); }  // of the last batch loaded

 private:
  const Subject& subject_;
  std::vector<std::uint64_t> seeds_;  // by member of the session
  std::vector<ParameterSpec> parameters_;
  std::unique_ptr<Session> session_;
  std::optional<Feeder> feeder_;
};

// Applies `change` to every element of a floating tensor.
void transform(Session& session, std::string_view name, int member,
               const std::function<double(std::size_t, double)>& change);

// Layers of the stack that ends in the head, and its prefix ("" or "decoder.").
std::string stack_prefix(const ModelConfig& model);
std::int64_t sublayers(const ModelConfig& model);

}  // namespace norma
