// norma plan: parameters, memory by tensor, operations and the time of a step, before anything runs.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/limits.h"
#include "cli/overrides.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "norma/core/error.h"
#include "norma/core/machine.h"
#include "norma/models/budget.h"
#include "norma/train/cohort.h"
#include "norma/train/data.h"

namespace norma::cli {
namespace {

using json = nlohmann::json;

struct PlanOptions {
  std::string config;
  bool json = false;
  bool measure = false;
};

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// The least time that each node's operations or bytes take at the machine's limits, one after another.
double predicted_seconds(const Plan& plan, const bench::Report& limits) {
  const double flops = limits.limit("sgemm_gflops") * 1e9, bytes = limits.limit("cache_copy_gbps") * 1e9;
  double seconds = 0;
  for (const Step& step : plan.steps()) {
    const Node& node = plan.nodes()[static_cast<std::size_t>(step.node)];
    std::vector<Type> in, out;
    for (const int id : node.inputs) in.push_back(plan.values()[static_cast<std::size_t>(id)].type);
    for (const int id : node.outputs) out.push_back(plan.values()[static_cast<std::size_t>(id)].type);
    const Cost cost = node.op->cost(in, out);
    seconds += std::max(cost.flops / flops, cost.bytes / bytes);
  }
  return seconds;
}

// Of a stack that is too deep to trace, all but the layers between the traced depths and its own.
std::int64_t parameters_of(ModelConfig model) {
  const std::int64_t depth = model.layers;
  if (depth <= kTracedDepths.back()) return model_budget(model).parameters;
  model.encoder_layers = std::min(model.encoder_layers, kTracedDepths.back());
  std::array<Budget, 3> at;
  for (std::size_t i = 0; i < at.size(); ++i) {
    model.layers = kTracedDepths[i];
    at[i] = model_budget(model);
  }
  return continued(at, depth).parameters;
}

// Laying out a stack takes time and memory; one that can never run is refused before.
void check_parameters_fit(const ModelConfig& model) {
  const double bytes = static_cast<double>(parameters_of(model)) * static_cast<double>(size_of(model.dtype));
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (bytes > memory)
    fail("the parameters alone take {}, but this machine has {}", bytes_text(bytes), bytes_text(memory));
}

json describe_plan(const RunConfig& given, bool measure) {
  const std::shared_ptr<const Source> source = open_data(given);
  const RunConfig config = resolve_config(given, *source);
  check_parameters_fit(config.model);
  const std::vector<TrainConfig> members = member_configs(config);
  const std::int64_t before_plan = resident_bytes();
  const TrainingStep step = build_training_step(config.model, step_options(config));
  const std::int64_t program = std::max<std::int64_t>(0, resident_bytes() - before_plan);
  const Plan& plan = *step.plan;
  const Budget budget = model_budget(config.model);
  const auto count = static_cast<std::int64_t>(members.size());
  const double tokens = static_cast<double>(config.model.batch * config.model.time);
  json by_role;
  for (const auto& [role, parameters] : budget.by_role) by_role[role] = parameters;
  json tensors = json::array();
  for (const int id : plan.largest_values(20)) {
    const Value& value = plan.values()[static_cast<std::size_t>(id)];
    tensors.push_back({{"name", value.name},
                       {"type", value.type.str()},
                       {"kind", std::string(name_of(value.role))},
                       {"bytes", value.type.bytes()}});
  }
  std::map<std::string, std::int64_t> by_kind;
  for (const Role role : {Role::parameter, Role::state, Role::input, Role::constant}) {
    for (const std::string& name : plan.slot_names(role))
      by_kind[std::string(name_of(role))] += plan.slot(name).type.bytes();
  }
  const int threads = config.train.threads > 0 ? static_cast<int>(config.train.threads) : machine().cores;
  json all = {{"scheme", config.model.scheme},
              {"members", count},
              {"parameters", budget.parameters},
              {"parameters_by_role", by_role},
              {"norm_instances", budget.norm_instances},
              {"norm_parameters", budget.norm_parameters},
              {"memory",
               {{"by_kind", by_kind},
                {"activations", plan.transient_bytes()},
                {"least_activations", plan.peak_live_bytes()},
                {"one_member", plan.member_bytes()},
                {"thread_scratch", plan.worker_bytes() * threads},
                {"program", program},
                {"total", plan.member_bytes() * count + plan.worker_bytes() * threads + program},
                {"largest", tensors}}},
              {"flops_per_step", budget.flops * static_cast<double>(config.train.accumulate)},
              {"flops_per_token", budget.flops / tokens},
              {"bytes_per_token", plan.cost().bytes / tokens},
              {"kernels", plan.steps().size()}};
  bench::Report limits;
  bench::measure_limits(limits, {.seconds = 0.1, .threads = threads});
  const double one = predicted_seconds(plan, limits) * static_cast<double>(config.train.accumulate);
  all["limits"] = {{"copy_gbps", limits.limit("copy_gbps")},
                   {"cache_copy_gbps", limits.limit("cache_copy_gbps")},
                   {"sgemm_gflops", limits.limit("sgemm_gflops")}};
  all["predicted"] = {{"seconds_per_step", one * static_cast<double>(count)},
                      {"tokens_per_second", tokens * static_cast<double>(config.train.accumulate) / one},
                      {"seconds", one * static_cast<double>(count * config.train.steps)}};
  if (measure) {
    const std::int64_t before = resident_bytes();
    Cohort cohort(given, source);
    for (int i = 0; i < 2; ++i) cohort.train_step();
    const std::int64_t after = resident_bytes();
    const auto start = std::chrono::steady_clock::now();
    int steps = 0;
    double seconds = 0;
    for (; steps < 3 || seconds < 1; ++steps) {
      cohort.train_step();
      seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    all["measured"] = {{"memory", after - before}, {"seconds_per_step", seconds / steps}};
  }
  return all;
}

void print_plan(const json& all) {
  const auto bytes = [](const json& value) { return bytes_text(value.get<double>()); };
  fmt::print("{} parameters in one member of {}\n", with_units(all["parameters"].get<double>()),
             all["members"].get<int>());
  for (const auto& [role, count] : all["parameters_by_role"].items())
    fmt::print("  {:<18} {:>14}\n", role, count.get<std::int64_t>());
  fmt::print("norms: {} instances, {} parameters\n", all["norm_instances"].get<int>(),
             all["norm_parameters"].get<std::int64_t>());
  const json& memory = all["memory"];
  fmt::print("\nmemory of one member {}\n", bytes(memory["one_member"]));
  for (const auto& [kind, size] : memory["by_kind"].items()) fmt::print("  {:<18} {:>14}\n", kind, bytes(size));
  fmt::print("  {:<18} {:>14}  (at least {})\n", "activations", bytes(memory["activations"]),
             bytes(memory["least_activations"]));
  fmt::print("in all {}, of which {} for threads and {} for kernels and the plan itself; the largest tensors:\n",
             bytes(memory["total"]), bytes(memory["thread_scratch"]), bytes(memory["program"]));
  for (std::size_t i = 0; i < std::min<std::size_t>(8, memory["largest"].size()); ++i) {
    const json& tensor = memory["largest"][i];
    fmt::print("  {:>10}  {:<10} {} {}\n", bytes(tensor["bytes"]), tensor["kind"].get<std::string>(),
               tensor["name"].get<std::string>(), tensor["type"].get<std::string>());
  }
  fmt::print("\n{} operations and {} a token, {} kernels a step\n", with_units(all["flops_per_token"].get<double>()),
             bytes(all["bytes_per_token"]), all["kernels"].get<int>());
  const json& predicted = all["predicted"];
  fmt::print("at {:.0f} GFLOP/s and {:.0f} GB/s in cache a step takes at least {:.3g} ms, the run {}\n",
             all["limits"]["sgemm_gflops"].get<double>(), all["limits"]["cache_copy_gbps"].get<double>(),
             predicted["seconds_per_step"].get<double>() * 1e3, duration_text(predicted["seconds"].get<double>()));
  if (all.contains("measured")) {
    fmt::print("measured: {:.3g} ms a step, {}\n", all["measured"]["seconds_per_step"].get<double>() * 1e3,
               bytes(all["measured"]["memory"]));
  }
}

}  // namespace

void add_plan(CLI::App& app) {
  const auto options = std::make_shared<PlanOptions>();
  CLI::App* verb = app.add_subcommand("plan", "Parameters, memory, operations and time of a run, before it runs");
  verb->add_option("config", options->config, "TOML file; without it the embedded default run");
  verb->add_flag("--json", options->json, "Print JSON");
  verb->add_flag("--measure", options->measure, "Take a few steps and compare");
  add_schemes_dir(*verb);
  verb->allow_extras();
  verb->callback([options, verb] {
    RunConfig config = options->config.empty() ? RunConfig() : read_config(options->config);
    apply_overrides(config, verb->remaining());
    const json all = describe_plan(config, options->measure);
    if (options->json) {
      fmt::print("{}\n", all.dump(2));
    } else {
      print_plan(all);
    }
  });
}

}  // namespace norma::cli
