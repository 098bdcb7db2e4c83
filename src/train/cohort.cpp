#include "norma/train/cohort.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "norma/backends/device.h"
#include "norma/core/arena.h"
#include "norma/core/error.h"
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

// Half of the 99.9 % interval of a mean, by Student's t.
std::optional<double> margin_of(const std::vector<double>& losses) {
  constexpr double kT[] = {636.62, 31.60, 12.92, 8.61, 6.87, 5.96, 5.41, 5.04, 4.78, 4.59};  // for 1, 2, ... degrees
  if (losses.size() < 2) return std::nullopt;
  const auto n = static_cast<double>(losses.size());
  double mean = 0, square = 0;
  for (const double loss : losses) mean += loss / n;
  for (const double loss : losses) square += (loss - mean) * (loss - mean) / (n - 1);
  return kT[std::min(losses.size() - 2, std::size(kT) - 1)] * std::sqrt(square / n);
}

}  // namespace

RunConfig resolve_config(RunConfig config, const Source& source) {
  config = settle_task(std::move(config));
  check_task(config);
  ModelConfig& model = config.model;
  take_sizes(source, model);
  check_reads(model, source);
  const std::vector<TrainConfig> members = member_configs(config);
  model.dropout = std::any_of(members.begin(), members.end(), [](const TrainConfig& one) { return one.dropout > 0; });
  model.smoothing = config.train.smoothing > 0;
  model.mixture = config.data.settings.contains("mixup") && config.data.settings.at("mixup") > 0;
  config.train.schedule.steps = config.train.steps;
  return config;
}

std::int64_t tokens_per_step(const RunConfig& config) {
  std::int64_t read = 0;
  for (const InputSpec& input : config.model.family->inputs(config.model)) {
    if (input.content == InputSpec::Content::ids && input.sizes.front().name == "batch")
      read += input.shape().elements();
  }
  if (read == 0) read = size_of(config.model, "nodes");  // of graphs
  return (read > 0 ? read : config.model.batch) * config.train.accumulate;
}

StepOptions step_options(const RunConfig& config) {
  check(config.train.precision, config.train.device, config.model.dtype);
  if (config.model.stream == StreamWidth::bf16 && config.train.precision != Precision::bf16) {
    fail("model.stream is bf16, but train.precision is {}; a stream of bf16 needs train.precision=bf16",
         name_of(config.train.precision));
  }
  return {.optimiser = config.train.optimiser,
          .decay_vectors = config.train.decay_vectors,
          .groups = config.groups,
          .accumulate = config.train.accumulate,
          .ema = config.train.ema > 0,
          .probes = config.train.probes,
          .recompute_every = static_cast<int>(config.train.recompute_every),
          .keep = config.train.keep,
          .narrow = config.train.precision == Precision::bf16,
          .backend = &device_backend(config)};
}

Cohort::Handles Cohort::handles_of(const Session& session, const std::vector<std::string>& persistent) {
  Handles handles{.control = session.handle("control"),
                  .clip = session.handle("clip"),
                  .first = session.find("first"),
                  .ema_take = session.find("ema_take"),
                  .loss = session.handle("loss"),
                  .gradient_norm = session.handle("gradient_norm"),
                  .persistent = {}};
  for (const std::string& name : persistent) handles.persistent.push_back(session.handle(name));
  return handles;
}

Cohort::Cohort(const RunConfig& config, std::shared_ptr<const Source> source, CohortOptions options)
    : config_(resolve_config(config, *source)),
      settings_(member_configs(config_)),
      lag_(options.lag),
      source_(std::move(source)),
      plan_(build_training_step(config_.model, step_options(config_))),
      session_(make_session(plan_.plan,
                            {.members = static_cast<int>(settings_.size()),
                             .threads = options.threads > 0 ? options.threads : static_cast<int>(config_.train.threads),
                             .tf32 = config_.train.precision == Precision::tf32})),
      feeder_(*session_, config_.model, plan_.schedules),
      states_(settings_.size()),
      detectors_(settings_.size(), Detector(config_.detect)),
      snapshots_(settings_.size()),
      readable_(settings_.size(), Readable::nothing),
      persistent_(persistent_names(*plan_.plan)),
      handles_(handles_of(*session_, persistent_)) {
  // A part of a step waits for the parts before it, so losses of several are read at once.
  reads_later_ = lag_ > 0 && lag_ <= session_->earlier_runs() && config_.train.accumulate == 1;
  for (MemberState& state : states_) state.best_loss = std::numeric_limits<double>::infinity();
  for (const TrainConfig& one : settings_) data_seeds_.push_back(static_cast<std::uint64_t>(one.data_seed));
  for (const auto* specs : {&plan_.parameters, &plan_.kept}) initialise(*session_, *specs, weight_seeds());
  profile();
  start_means();
  for (int member = 0; member < members(); ++member) {
    if (config_.detect.recovery == Recovery::roll_back) snapshots_[static_cast<std::size_t>(member)] = snapshot(member);
  }
}

std::vector<std::uint64_t> Cohort::weight_seeds() const {
  std::vector<std::uint64_t> seeds;
  for (const TrainConfig& one : settings_) seeds.push_back(static_cast<std::uint64_t>(one.seed));
  return seeds;
}

// Values that the scheme measures on data start from the first batch, each member with its own weights and dropout.
void Cohort::profile() {
  Graph graph;
  const Model model = build_model(graph, config_.model, {.profile = true});
  if (graph.outputs().empty()) return;
  const auto profiled =
      make_session(compile(graph, device_backend(config_)), {.members = members(), .threads = session_->threads()});
  initialise(*profiled, model.parameters, weight_seeds());
  Feeder feeder(*profiled, config_.model, plan_.schedules);
  stage_batch(feeder, 0);
  feeder.schedules(0, static_cast<double>(config_.train.steps));
  profiled->run();
  for (int member = 0; member < members(); ++member) apply_profile(*profiled, *session_, plan_.parameters, member);
}

// Moving means of the weights start where these do.
void Cohort::start_means() {
  if (config_.train.ema == 0) return;
  std::vector<std::byte> bytes;
  for (const ParameterSpec& spec : plan_.parameters) {
    const Handle from = session_->handle(spec.name), to = session_->handle(ema_name(spec.name));
    bytes.resize(from.bytes());
    for (int member = 0; member < members(); ++member) {
      session_->read(from, member, bytes);
      session_->stage(to, member, bytes);
    }
  }
}

// What is evaluated are the means.
void Cohort::evaluate_means() {
  if (config_.train.ema == 0) return;
  std::vector<std::byte> bytes;
  for (const ParameterSpec& spec : plan_.parameters) {
    const Handle from = session_->handle(ema_name(spec.name)), to = evaluation_->session->find(spec.name);
    if (!to) continue;
    bytes.resize(from.bytes());
    for (int member = 0; member < members(); ++member) {
      session_->read(from, member, bytes);
      evaluation_->session->stage(to, member, bytes);
    }
  }
}

void Cohort::use_threads(int threads) {
  session_->use_threads(threads);
  if (evaluation_ != nullptr) evaluation_->session->use_threads(threads);
}

int Cohort::active_members() const {
  return static_cast<int>(
      std::count_if(states_.begin(), states_.end(), [](const MemberState& state) { return !state.diverged; }));
}

double Cohort::flops_per_step() const {
  if (!flops_) flops_ = model_flops(config_.model) * static_cast<double>(config_.train.accumulate);
  return *flops_;
}

std::int64_t Cohort::parameters() const {
  std::int64_t count = 0;
  for (const ParameterSpec& spec : plan_.parameters) count += plan_.plan->slot(spec.name).type.shape.elements();
  return count;
}

std::int64_t Cohort::memory_bytes() const { return session_->memory_bytes(); }

EvaluationStep Cohort::evaluation_step() const {
  return build_evaluation_step(config_.model, logits_are_small(config_.model), &device_backend(config_),
                               config_.train.precision == Precision::bf16);
}

void Cohort::require_room_for_evaluation() const {
  const bool on_gpu = resolve(config_.train.device, config_.model.dtype) == Device::cuda;
  if (!on_gpu || source_->evaluation_batches() == 0) return;
  const std::int64_t free = available_memory(config_.train.device);
  if (memory_bytes() <= free) return;  // a forward pass takes less than a step
  const std::int64_t needed = evaluation_step().plan->member_bytes() * members();
  if (needed > free)
    fail(
        "an evaluation takes {} beside the {} of training, but the GPU has {} left. Less is needed with {}smaller "
        "batches, train.keep=lean or train.recompute_every; data.evaluation_batches=0 leaves evaluations out",
        describe_bytes(needed), describe_bytes(memory_bytes()), describe_bytes(free),
        members() > 1 ? "fewer members, " : "");
}

// The weights as they are now, with neither dropout nor smoothing.
void Cohort::prepare_evaluation() {
  if (evaluation_ == nullptr) {
    auto session = make_session(
        evaluation_step().plan,
        {.members = members(), .threads = session_->threads(), .tf32 = config_.train.precision == Precision::tf32});
    Feeder feeder(*session, config_.model, plan_.schedules);
    evaluation_ = std::make_unique<Evaluation>(Evaluation{std::move(session), std::move(feeder)});
  }
  Session& session = *evaluation_->session;
  session.copy(*session_, persistent_names(session.plan()));
  evaluate_means();
  evaluation_->feeder.schedules(static_cast<double>(step_), static_cast<double>(config_.train.steps));
  for (int member = 0; member < members(); ++member) {
    session.set_active(member, !states_[static_cast<std::size_t>(member)].diverged);
    evaluation_->feeder.dropout(member, 0, 0, 0);
    evaluation_->feeder.smoothing(member, 0);
  }
}

void Cohort::evaluate() {
  const std::int64_t batches = source_->evaluation_batches();
  if (batches == 0) return;
  prepare_evaluation();
  Session& session = *evaluation_->session;
  Feeder& feeder = evaluation_->feeder;
  const Handle loss = session.handle("loss");
  std::vector<double> sums(states_.size(), 0), counts(states_.size(), 0);
  std::vector<std::vector<double>> losses(states_.size());
  std::vector<Accuracy> accuracies(states_.size());
  for (std::int64_t index = 0; index < batches; ++index) {
    feeder.evaluation_batch(*source_, index);
    const double counted = feeder.counted();
    if (counted == 0) continue;
    session.run();
    for (std::size_t member = 0; member < states_.size(); ++member) {
      if (states_[member].diverged) continue;
      losses[member].push_back(session.number(loss, static_cast<int>(member)));
      sums[member] += counted * losses[member].back();
      counts[member] += counted;
      if (session.plan().has_slot("logits"))
        accuracies[member].add(session, static_cast<int>(member), feeder.last().ids("targets"));
    }
  }
  for (std::size_t member = 0; member < states_.size(); ++member) {
    MemberState& state = states_[member];
    if (state.diverged || counts[member] == 0) continue;
    state.evaluation_loss = sums[member] / counts[member];
    state.evaluation_margin = margin_of(losses[member]);
    if (accuracies[member].counted > 0) {
      const RightShare share = accuracies[member].share();
      state.evaluation_accuracy = share.value;
      state.evaluation_records = share.records;
    }
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
    const Handle found = session_->handle(probe.output);
    const auto output = [&](std::size_t index) { return session_->number(found, member, index); };
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
    sums.gradient += session_->number(TrainingStep::kGradientSquares, member, i);
    sums.update += session_->number(TrainingStep::kUpdateSquares, member, i);
  }
  for (const std::string& layer : order) {
    const Sums& sums = layers.at(layer);
    values.push_back({"gradient_rms", layer, std::sqrt(sums.gradient / sums.elements)});
    values.push_back({"update_rms", layer, std::sqrt(sums.update / sums.elements)});
  }
  return values;
}

}  // namespace norma
