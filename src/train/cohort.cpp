#include "norma/train/cohort.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "norma/backends/cpu.h"
#include "norma/models/profile.h"
#include "norma/train/data.h"
#include "norma/train/judge.h"

namespace norma {
namespace {

std::vector<std::string> persistent_names(const Plan& plan) {
  std::vector<std::string> names = plan.slot_names(Role::parameter);
  const std::vector<std::string> states = plan.slot_names(Role::state);
  names.insert(names.end(), states.begin(), states.end());
  return names;
}

}  // namespace

RunConfig resolve_config(RunConfig config, const Source& source) {
  config = settle_task(std::move(config));
  check_task(config);
  ModelConfig& model = config.model;
  if (model.vocabulary == 0) model.vocabulary = source.vocabulary();
  check_vocabulary(source, model.vocabulary);
  if (source.classes() > 0) {
    if (model.classes == 0) model.classes = source.classes();
    if (model.classes < source.classes())
      fail("the data has {} classes but model.classes is {}", source.classes(), model.classes);
  }
  Batch batch;
  source.fill(0, 1, batch);
  if ((model.family == Family::encoder_decoder) == batch.source.empty())
    fail("the data has {} side but the model reads {}: {}", batch.source.empty() ? "one" : "a second",
         batch.source.empty() ? "two" : "only one", source.describe());
  const std::vector<TrainConfig> members = member_configs(config);
  model.dropout = std::any_of(members.begin(), members.end(), [](const TrainConfig& one) { return one.dropout > 0; });
  model.smoothing = config.train.smoothing > 0;
  config.train.schedule.steps = config.train.steps;
  return config;
}

std::int64_t tokens_per_step(const RunConfig& config) {
  const ModelConfig& m = config.model;
  const std::int64_t source_time =
      m.family == Family::encoder_decoder ? (m.source_time > 0 ? m.source_time : m.time) : 0;
  return m.batch * (m.time + source_time) * config.train.accumulate;
}

StepOptions step_options(const RunConfig& config) {
  return {.optimiser = config.train.optimiser,
          .decay_vectors = config.train.decay_vectors,
          .groups = config.groups,
          .accumulate = config.train.accumulate,
          .probes = config.train.probes,
          .recompute_every = static_cast<int>(config.train.recompute_every)};
}

Cohort::Cohort(const RunConfig& config, std::shared_ptr<const Source> source)
    : config_(resolve_config(config, *source)),
      settings_(member_configs(config_)),
      source_(std::move(source)),
      plan_(build_training_step(config_.model, step_options(config_))),
      session_(plan_.plan,
               {.members = static_cast<int>(settings_.size()), .threads = static_cast<int>(config_.train.threads)}),
      states_(settings_.size()),
      detectors_(settings_.size(), Detector(config_.detect)),
      snapshots_(settings_.size()),
      readable_(settings_.size(), Readable::nothing),
      persistent_(persistent_names(*plan_.plan)) {
  for (MemberState& state : states_) state.best_loss = std::numeric_limits<double>::infinity();
  for (int member = 0; member < members(); ++member) {
    const auto seed = static_cast<std::uint64_t>(settings_[static_cast<std::size_t>(member)].seed);
    initialise(session_, plan_.parameters, seed, member);
  }
  profile();
  for (int member = 0; member < members(); ++member) {
    if (config_.detect.recovery == Recovery::roll_back) take_snapshot(member);
  }
}

// Values that the scheme measures on data start from the first batch, each member with its own weights and dropout.
void Cohort::profile() {
  Graph graph;
  const Model model = build_model(graph, config_.model, {.profile = true});
  if (graph.outputs().empty()) return;
  Session profiled(compile(graph, cpu_backend()), {.members = members(), .threads = session_.threads()});
  for (int member = 0; member < members(); ++member) {
    const auto seed = static_cast<std::uint64_t>(settings_[static_cast<std::size_t>(member)].seed);
    initialise(profiled, model.parameters, seed, member);
  }
  load_batch(profiled, 0);
  write_noise(profiled, 0);
  for (const Schedule& schedule : plan_.schedules) {
    const double value = schedule.at(0, static_cast<double>(config_.train.steps));
    for (int member = 0; member < members(); ++member) write_number(profiled, schedule.input, value, member);
  }
  profiled.run();
  for (int member = 0; member < members(); ++member) apply_profile(profiled, session_, plan_.parameters, member);
}

int Cohort::active_members() const {
  return static_cast<int>(
      std::count_if(states_.begin(), states_.end(), [](const MemberState& state) { return !state.diverged; }));
}

double Cohort::flops_per_step() const {
  return model_flops(config_.model) * static_cast<double>(config_.train.accumulate);
}

std::int64_t Cohort::parameters() const {
  std::int64_t count = 0;
  for (const ParameterSpec& spec : plan_.parameters) count += plan_.plan->slot(spec.name).type.shape.elements();
  return count;
}

std::int64_t Cohort::memory_bytes() const {
  return plan_.plan->member_bytes() * session_.members() + worker_bytes(*plan_.plan) * session_.threads();
}

double Cohort::number(Session& session, const std::string& output, int member, std::size_t index) {
  if (session.plan().slot(output).type.dtype == DType::f32)
    return static_cast<double>(session.tensor<float>(output, member)[index]);
  return session.tensor<double>(output, member)[index];
}

std::vector<MemberEvent> Cohort::train_step(Watching watching) {
  for (std::size_t member = 0; member < states_.size(); ++member) {
    if (!states_[member].diverged && detectors_[member].in_doubt()) watching = Watching::yes;
  }
  const std::int64_t batches = config_.train.accumulate;
  write_schedules();
  for (MemberState& state : states_) {
    if (!state.diverged) state.loss = 0;
  }
  for (std::int64_t part = 0; part < batches; ++part) {
    const std::int64_t index = step_ * batches + part;
    load_batch(session_, static_cast<std::uint64_t>(index));
    write_controls(part == 0, part + 1 == batches);
    write_noise(session_, index);
    session_.run(part + 1 == batches ? watching : Watching::no);
    for (int member = 0; member < members(); ++member) {
      MemberState& state = states_[static_cast<std::size_t>(member)];
      if (!state.diverged) state.loss += number(session_, "loss", member) / static_cast<double>(batches);
    }
  }
  ++step_;
  std::vector<MemberEvent> events;
  for (int member = 0; member < members(); ++member) {
    MemberState& state = states_[static_cast<std::size_t>(member)];
    if (state.diverged) continue;
    state.gradient_norm = number(session_, "gradient_norm", member);
    readable_[static_cast<std::size_t>(member)] = watching == Watching::yes ? Readable::everything : Readable::layers;
    judge(member, events);
    const bool snapshot = config_.detect.recovery == Recovery::roll_back && step_ % config_.detect.snapshot_every == 0;
    if (snapshot && !state.diverged && std::isfinite(state.loss) && std::isfinite(state.gradient_norm))
      take_snapshot(member);
  }
  return events;
}

void Cohort::evaluate() {
  const std::int64_t batches = source_->evaluation_batches();
  if (batches == 0) return;
  if (evaluation_ == nullptr) {
    evaluation_ = std::make_unique<Session>(build_evaluation_step(config_.model, logits_are_small(config_.model)).plan,
                                            Session::Options{.members = members(), .threads = session_.threads()});
  }
  Session& session = *evaluation_;
  for (int member = 0; member < members(); ++member) {
    session.set_active(member, !states_[static_cast<std::size_t>(member)].diverged);
    for (const ParameterSpec& spec : plan_.parameters) {
      const std::span<std::byte> from = session_.bytes(spec.name, member), to = session.bytes(spec.name, member);
      std::copy(from.begin(), from.end(), to.begin());
    }
    for (const Schedule& schedule : plan_.schedules) {
      const double value = schedule.at(static_cast<double>(step_), static_cast<double>(config_.train.steps));
      write_number(session, schedule.input, value, member);
    }
    if (config_.model.dropout) write_number(session, "dropout", 0, member);
    if (config_.model.smoothing) write_number(session, "smoothing", 0, member);
  }
  std::vector<double> sums(states_.size(), 0), counts(states_.size(), 0);
  std::vector<Accuracy> accuracies(states_.size());
  for (std::int64_t index = 0; index < batches; ++index) {
    load_evaluation_batch(session, index);
    const auto counted = static_cast<double>(
        std::count_if(batch_.targets.begin(), batch_.targets.end(), [](std::int32_t id) { return id != kIgnored; }));
    if (counted == 0) continue;
    session.run();
    for (std::size_t member = 0; member < states_.size(); ++member) {
      if (states_[member].diverged) continue;
      sums[member] += counted * number(session, "loss", static_cast<int>(member));
      counts[member] += counted;
      if (session.plan().has_slot("logits")) accuracies[member].add(session, static_cast<int>(member), batch_.targets);
    }
  }
  for (std::size_t member = 0; member < states_.size(); ++member) {
    MemberState& state = states_[member];
    if (state.diverged || counts[member] == 0) continue;
    state.evaluation_loss = sums[member] / counts[member];
    if (accuracies[member].counted > 0) state.evaluation_accuracy = accuracies[member].share();
    if (!state.best_evaluation_loss || *state.evaluation_loss < *state.best_evaluation_loss)
      state.best_evaluation_loss = state.evaluation_loss;
  }
}

std::vector<ProbeValue> Cohort::probes(int member) {
  std::vector<ProbeValue> values;
  const Readable readable = readable_[static_cast<std::size_t>(member)];
  if (!config_.train.probes || readable == Readable::nothing) return values;
  for (const ProbeSite& probe : plan_.probes) {
    if (readable != Readable::everything) break;
    const auto output = [&](std::size_t index) { return number(session_, probe.output, member, index); };
    for (const auto& [name, value] : read_probe(probe, output))
      values.push_back({std::string(name), probe.site, value});
  }
  struct Sums {
    double elements = 0, gradient = 0, update = 0;
  };
  std::map<std::string, Sums> layers;
  std::vector<std::string> order;
  for (std::size_t i = 0; i < plan_.places.size(); ++i) {
    const ParameterPlace& place = plan_.places[i];
    if (!layers.contains(place.layer)) order.push_back(place.layer);
    Sums& sums = layers[place.layer];
    sums.elements += place.elements;
    sums.gradient += number(session_, TrainingStep::kGradientSquares, member, i);
    sums.update += number(session_, TrainingStep::kUpdateSquares, member, i);
  }
  for (const std::string& layer : order) {
    const Sums& sums = layers.at(layer);
    values.push_back({"gradient_rms", layer, std::sqrt(sums.gradient / sums.elements)});
    values.push_back({"update_rms", layer, std::sqrt(sums.update / sums.elements)});
  }
  return values;
}

}  // namespace norma
