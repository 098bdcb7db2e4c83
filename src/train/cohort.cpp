#include "norma/train/cohort.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "norma/models/fusions.h"
#include "norma/models/profile.h"
#include "norma/train/data.h"
#include "norma/train/judge.h"

namespace norma {
namespace {

std::array<std::int32_t, 4> key_words(std::int64_t seed, std::int64_t step) {
  const auto low = [](std::int64_t x) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(x)); };
  const auto high = [](std::int64_t x) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::uint64_t>(x) >> 32));
  };
  return {low(seed), high(seed), low(step), high(step)};
}

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

StepOptions step_options(const RunConfig& config) {
  const std::vector<TrainConfig> members = member_configs(config);
  return {.optimiser = config.train.optimiser,
          .clip = std::any_of(members.begin(), members.end(), [](const TrainConfig& one) { return one.clip > 0; }),
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
  Session profiled(compile(graph, {.rewrites = all_fusions()}), {.members = members(), .threads = session_.threads()});
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

std::int64_t Cohort::tokens_per_step() const {
  const ModelConfig& m = config_.model;
  const std::int64_t source_time =
      m.family == Family::encoder_decoder ? (m.source_time > 0 ? m.source_time : m.time) : 0;
  return m.batch * (m.time + source_time) * config_.train.accumulate;
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
  return plan_.plan->member_bytes() * session_.members() + plan_.plan->worker_bytes() * session_.threads();
}

void Cohort::write_number(Session& session, const std::string& input, double value, int member) {
  if (session.plan().slot(input).type.dtype == DType::f32) {
    session.write<float>(input, std::array{static_cast<float>(value)}, member);
  } else {
    session.write<double>(input, std::array{value}, member);
  }
}

double Cohort::number(Session& session, const std::string& output, int member, std::size_t index) {
  if (session.plan().slot(output).type.dtype == DType::f32)
    return static_cast<double>(session.tensor<float>(output, member)[index]);
  return session.tensor<double>(output, member)[index];
}

void Cohort::write_batch(Session& session, int member) {
  const auto write = [&](const char* input, const std::vector<std::int32_t>& ids) {
    if (session.plan().has_slot(input)) session.write<std::int32_t>(input, ids, member);
  };
  write("tokens", batch_.tokens);
  write("targets", batch_.targets);
  write("source", batch_.source);
  write("source_lengths", batch_.source_lengths);
  if (session.plan().has_slot("lengths") && batch_.lengths.empty()) {
    batch_.lengths.assign(static_cast<std::size_t>(config_.model.batch), static_cast<std::int32_t>(config_.model.time));
  }
  write("lengths", batch_.lengths);
}

// Members with one data seed see the same batch; it is made once.
void Cohort::load_batch(Session& session, std::uint64_t index) {
  std::optional<std::int64_t> made;
  for (int member = 0; member < members(); ++member) {
    if (states_[static_cast<std::size_t>(member)].diverged) continue;
    const std::int64_t seed = settings_[static_cast<std::size_t>(member)].data_seed;
    if (made != seed) source_->fill(index, static_cast<std::uint64_t>(seed), batch_);
    made = seed;
    write_batch(session, member);
  }
}

void Cohort::load_evaluation_batch(Session& session, std::int64_t index) {
  source_->fill_evaluation(index, batch_);
  for (int member = 0; member < members(); ++member) write_batch(session, member);
}

void Cohort::write_schedules() {
  for (const Schedule& schedule : plan_.schedules) {
    const double value = schedule.at(static_cast<double>(step_), static_cast<double>(config_.train.steps));
    for (int member = 0; member < members(); ++member) write_number(session_, schedule.input, value, member);
  }
}

void Cohort::write_controls(bool first, bool last) {
  for (int member = 0; member < members(); ++member) {
    const TrainConfig& one = settings_[static_cast<std::size_t>(member)];
    MemberState& state = states_[static_cast<std::size_t>(member)];
    if (state.diverged) continue;
    const double factor = schedule_factor(one.schedule, step_ + 1);
    ControlBlock control = control_block(one.optimiser, one.lr * state.lr_factor, factor, step_ + 1);
    state.lr = control[OptimiserControl::lr];
    // A batch of this step that was not finite already spoils the sum.
    control[OptimiserControl::active] = last && std::isfinite(state.loss) ? 1 : 0;
    if (config_.model.dtype == DType::f32) {
      session_.write<float>("control", std::vector<float>(control.begin(), control.end()), member);
    } else {
      session_.write<double>("control", control, member);
    }
    write_number(session_, "clip", one.clip, member);
    if (config_.train.accumulate > 1) write_number(session_, "first", first ? 1 : 0, member);
  }
}

// Dropout and label smoothing of batch `index`.
void Cohort::write_noise(Session& session, std::int64_t index) {
  for (int member = 0; member < members(); ++member) {
    const TrainConfig& one = settings_[static_cast<std::size_t>(member)];
    if (config_.model.dropout) {
      write_number(session, "dropout", one.dropout, member);
      session.write<std::int32_t>("dropout_key", key_words(one.seed, index), member);
    }
    if (config_.model.smoothing && session.plan().has_slot("smoothing"))
      write_number(session, "smoothing", one.smoothing, member);
  }
}

std::vector<MemberEvent> Cohort::train_step() {
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
    session_.run();
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
    judge(member, state.loss, events);
    const bool snapshot = config_.detect.recovery == Recovery::roll_back && step_ % config_.detect.snapshot_every == 0;
    if (snapshot && !state.diverged && std::isfinite(state.loss)) take_snapshot(member);
  }
  return events;
}

void Cohort::judge(int member, double loss, std::vector<MemberEvent>& events) {
  MemberState& state = states_[static_cast<std::size_t>(member)];
  Detector& detector = detectors_[static_cast<std::size_t>(member)];
  const std::int64_t spikes = detector.spikes();
  const std::optional<Astray> why = detector.watch(loss);
  state.spikes = detector.spikes();
  if (state.spikes > spikes)
    events.push_back(
        {step_, member, "spike", fmt::format("loss {:.4g}, rolling median {:.4g}", loss, detector.median())});
  if (const double median = detector.median(); median < state.best_loss) state.best_loss = median;
  if (!why) return;
  if (const auto action = recover(member, *why)) {
    events.push_back(*action);
  } else {
    events.push_back(freeze(member, *why));
  }
}

std::optional<MemberEvent> Cohort::recover(int member, Astray why) {
  MemberState& state = states_[static_cast<std::size_t>(member)];
  const DetectConfig& detect = config_.detect;
  if (detect.recovery == Recovery::none || state.actions >= detect.most_actions) return std::nullopt;
  if (detect.recovery == Recovery::skip && why != Astray::not_finite) return std::nullopt;
  ++state.actions;
  MemberEvent event{step_, member, "", std::string(name_of(why))};
  if (why == Astray::not_finite) ++state.skipped_steps;  // the plan itself kept the weights
  if (detect.recovery == Recovery::skip) {
    event.what = "skipped step";
    return event;
  }
  state.lr_factor *= detect.lr_factor;
  detectors_[static_cast<std::size_t>(member)].restart();
  if (detect.recovery == Recovery::lower_lr) {
    event.what = fmt::format("lowered learning rate to {:.4g} of its schedule", state.lr_factor);
    return event;
  }
  const Snapshot& snapshot = snapshots_[static_cast<std::size_t>(member)];
  std::size_t at = 0;
  for (const std::string& name : persistent_) {
    const std::span<std::byte> target = session_.bytes(name, member);
    std::copy_n(snapshot.bytes.begin() + static_cast<std::ptrdiff_t>(at), target.size(), target.begin());
    at += target.size();
  }
  event.what =
      fmt::format("rolled back to step {}, learning rate at {:.4g} of its schedule", snapshot.step, state.lr_factor);
  return event;
}

void Cohort::take_snapshot(int member) {
  Snapshot& snapshot = snapshots_[static_cast<std::size_t>(member)];
  snapshot.step = step_;
  snapshot.bytes.clear();
  for (const std::string& name : persistent_) {
    const std::span<std::byte> bytes = session_.bytes(name, member);
    snapshot.bytes.insert(snapshot.bytes.end(), bytes.begin(), bytes.end());
  }
}

MemberEvent Cohort::freeze(int member, Astray why) {
  MemberState& state = states_[static_cast<std::size_t>(member)];
  state.diverged = true;
  state.diverged_at_step = step_;
  state.diverged_because = name_of(why);
  std::string detail(name_of(why));
  if (why == Astray::not_finite) {
    // The weights are those before this step, so the step can be taken again, one node at a time.
    if (const auto bad = session_.run_checked(member)) {
      state.first_bad_wire = bad->wire;
      detail += fmt::format(": first in '{}', element {} is {}", bad->wire, bad->index, bad->value);
    }
  }
  session_.set_active(member, false);
  return {step_, member, "diverged", detail};
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
  if (!config_.train.probes) return values;
  for (const ProbeSite& probe : plan_.probes) {
    const auto output = [&](std::size_t index) { return number(session_, probe.output, member, index); };
    for (const auto& [name, value] : read_probe(probe, output))
      values.push_back({std::string(name), probe.site, value});
  }
  struct Sums {
    double elements = 0, gradient = 0, update = 0;
  };
  std::map<std::string, Sums> layers;
  std::vector<std::string> order;
  for (const ParameterPlace& place : plan_.places) {
    if (!layers.contains(place.layer)) order.push_back(place.layer);
    Sums& sums = layers[place.layer];
    sums.elements += place.elements;
    sums.gradient += number(session_, place.squares_output, member, place.squares_index);
    const auto tiles = static_cast<std::size_t>(plan_.plan->slot(place.update_output).type.shape.elements());
    for (std::size_t tile = 0; tile < tiles; ++tile) sums.update += number(session_, place.update_output, member, tile);
  }
  for (const std::string& layer : order) {
    const Sums& sums = layers.at(layer);
    values.push_back({"gradient_rms", layer, std::sqrt(sums.gradient / sums.elements)});
    values.push_back({"update_rms", layer, std::sqrt(sums.update / sums.elements)});
  }
  return values;
}

}  // namespace norma
