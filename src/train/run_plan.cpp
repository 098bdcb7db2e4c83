#include "norma/train/run_plan.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>

#include "norma/core/arena.h"
#include "norma/core/error.h"
#include "norma/train/cohort.h"
#include "norma/train/data.h"
#include "norma/train/memory.h"

namespace norma {
namespace {

constexpr std::array<std::int64_t, 3> kPlannedDepths = {kDeepestPlan / 4, kDeepestPlan / 2, kDeepestPlan};
constexpr std::size_t kLargest = 20;  // tensors that are listed

std::int64_t deepest_stack(const ModelConfig& model) { return std::max(model.layers, model.encoder_layers); }

// The same model with its deepest stack so deep, and the other in proportion; a shallow one stays.
ModelConfig at_depth(ModelConfig model, std::int64_t depth) {
  const std::int64_t deepest = deepest_stack(model);
  for (std::int64_t* layers : {&model.layers, &model.encoder_layers}) {
    if (*layers > kPlannedDepths.front())
      *layers = std::max<std::int64_t>(
          1, std::llround(static_cast<double>(*layers) * static_cast<double>(depth) / static_cast<double>(deepest)));
  }
  return model;
}

// A polynomial of degree two through the values at the planned depths; of degree one where the slope hardly changes:
// how tensors are laid out is no smooth function, and the rest of a bend grows with the square of the depth.
double continued_to(const std::array<double, 3>& at, std::int64_t depth) {
  const auto first = static_cast<double>(kPlannedDepths[0]), second = static_cast<double>(kPlannedDepths[1]),
             third = static_cast<double>(kPlannedDepths[2]), n = static_cast<double>(depth);
  const double before = (at[1] - at[0]) / (second - first), slope = (at[2] - at[1]) / (third - second);
  if (std::abs(slope - before) <= 0.2 * std::abs(slope)) return at[2] + (n - third) * (at[2] - at[0]) / (third - first);
  return at[2] + (n - third) * (slope + (slope - before) / (third - first) * (n - second));
}

Budget budget_of(const ModelConfig& model) {
  const std::int64_t depth = deepest_stack(model);
  if (depth <= kTracedDepths.back()) return model_budget(model);
  std::array<Budget, 3> at;
  for (std::size_t i = 0; i < at.size(); ++i) at[i] = model_budget(at_depth(model, kTracedDepths[i]));
  return continued(at, depth);
}

// Laying out a stack takes time and memory; one that can never run is refused before.
void check_it_can_fit(const RunConfig& config, std::int64_t parameters) {
  const double weights = static_cast<double>(parameters) * static_cast<double>(size_of(config.model.dtype));
  const double members = static_cast<double>(member_configs(config).size());
  const bool moments = config.train.optimiser.name != OptimiserName::sgd;
  const double least = weights * (moments ? 3 : 2) * members;  // gradients wait for their norm; a state or two
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (least > memory)
    fail(
        "the parameters alone take {}, and with gradients and the optimiser's state at least {}, but this machine has "
        "{}",
        describe_bytes(static_cast<std::int64_t>(std::min(weights, 9e18))),
        describe_bytes(static_cast<std::int64_t>(std::min(least, 9e18))),
        describe_bytes(static_cast<std::int64_t>(memory)));
}

// Memory that this process has allocated and touched: not the pages of its program and libraries.
std::int64_t allocated_bytes() {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    std::int64_t kilobytes = 0;
    if (word == "RssAnon:" && file >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

void describe_tensors(const Plan& plan, PlannedMemory& memory) {
  for (const int id : plan.largest_values(kLargest)) {
    const Value& value = plan.values()[static_cast<std::size_t>(id)];
    memory.largest.push_back({value.name, value.type.str(), std::string(name_of(value.role)), value.type.bytes()});
  }
  for (const Role role : {Role::parameter, Role::state, Role::input, Role::constant}) {
    for (const std::string& name : plan.slot_names(role))
      memory.by_kind[std::string(name_of(role))] += plan.slot(name).type.bytes();
  }
  memory.activations = plan.transient_bytes();
  memory.least_activations = plan.peak_live_bytes();
  memory.one_member = plan.member_bytes();
}

std::vector<StepCost> costs_of(const Plan& plan) {
  std::vector<StepCost> costs;
  for (const Step& step : plan.steps()) {
    const Node& node = plan.nodes()[static_cast<std::size_t>(step.node)];
    std::vector<Type> in, out;
    for (const int id : node.inputs) in.push_back(plan.values()[static_cast<std::size_t>(id)].type);
    for (const int id : node.outputs) out.push_back(plan.values()[static_cast<std::size_t>(id)].type);
    const Cost cost = node.op->cost(in, out);
    costs.push_back({cost.flops, cost.bytes});
  }
  return costs;
}

// What the plans of a stack as deep as given say.
RunPlan read_plans(const RunConfig& config, bool evaluates) {
  const TrainingStep step = build_training_step(config.model, step_options(config));
  const RunMemory memory = run_memory(config, step, evaluates);
  RunPlan plan{.members = memory.training.members,
               .threads = memory.training.threads,
               .kernels = static_cast<std::int64_t>(step.plan->steps().size()),
               .bytes_per_step = step.plan->cost().bytes,
               .costs = costs_of(*step.plan)};
  describe_tensors(*step.plan, plan.memory);
  plan.memory.training = memory.training.tensors();
  plan.memory.thread_scratch = memory.training.scratch();
  plan.memory.evaluation = memory.evaluation.bytes();
  plan.memory.judging = memory.judging.bytes();
  plan.memory.snapshots = memory.snapshots;
  plan.memory.peak = memory.peak();
  plan.memory.program = allocated_bytes();  // while the plans are there
  return plan;
}

RunPlan continued_plan(const RunConfig& config, bool evaluates) {
  const std::int64_t depth = deepest_stack(config.model);
  std::array<RunPlan, 3> at;
  for (std::size_t i = 0; i < at.size(); ++i) {
    RunConfig shallower = config;
    shallower.model = at_depth(config.model, kPlannedDepths[i]);
    at[i] = read_plans(shallower, evaluates);
  }
  const auto value = [&](auto number) {
    return continued_to(
        {static_cast<double>(number(at[0])), static_cast<double>(number(at[1])), static_cast<double>(number(at[2]))},
        depth);
  };
  const auto whole = [&](auto number) { return static_cast<std::int64_t>(std::llround(value(number))); };
  RunPlan plan = at[2];
  plan.kernels = whole([](const RunPlan& p) { return p.kernels; });
  plan.bytes_per_step = value([](const RunPlan& p) { return p.bytes_per_step; });
  plan.planned_share = static_cast<double>(at[2].kernels) / static_cast<double>(plan.kernels);
  for (auto field : {&PlannedMemory::activations, &PlannedMemory::least_activations, &PlannedMemory::one_member,
                     &PlannedMemory::training, &PlannedMemory::thread_scratch, &PlannedMemory::evaluation,
                     &PlannedMemory::judging, &PlannedMemory::snapshots, &PlannedMemory::peak, &PlannedMemory::program})
    plan.memory.*field = whole([&](const RunPlan& p) { return p.memory.*field; });
  for (auto& [kind, bytes] : plan.memory.by_kind)
    bytes = whole([&, k = kind](const RunPlan& p) { return p.memory.by_kind.at(k); });
  return plan;
}

}  // namespace

double RunPlan::tokens_per_step() const {
  return static_cast<double>(norma::tokens_per_step(config)) / static_cast<double>(config.train.accumulate);
}

RunPlan plan_run(const RunConfig& given) {
  const std::int64_t before = allocated_bytes();
  const std::shared_ptr<const Source> source = open_data(given);
  const RunConfig config = resolve_config(given, *source);
  const Budget budget = budget_of(config.model);
  check_it_can_fit(config, budget.parameters);
  const bool evaluates = source->evaluation_batches() > 0;
  RunPlan plan =
      deepest_stack(config.model) <= kDeepestPlan ? read_plans(config, evaluates) : continued_plan(config, evaluates);
  plan.memory.program = std::max<std::int64_t>(0, plan.memory.program - before);
  plan.config = config;
  plan.budget = budget;
  return plan;
}

double least_seconds(const RunPlan& plan, double flops, double bytes) {
  double seconds = 0;
  for (const StepCost& cost : plan.costs) seconds += std::max(cost.flops / flops, cost.bytes / bytes);
  const double batches = static_cast<double>(plan.config.train.accumulate);
  return seconds / plan.planned_share * batches * static_cast<double>(plan.members);
}

}  // namespace norma
