// norma plan: parameters, memory by tensor, operations and the time of a step, before anything runs.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/limits.h"
#include "cli/measured_run.h"
#include "cli/overrides.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "norma/core/error.h"
#include "norma/core/machine.h"
#include "norma/models/budget.h"
#include "norma/train/cohort.h"
#include "norma/train/data.h"
#include "norma/train/memory.h"

namespace norma::cli {
namespace {

using json = nlohmann::json;

constexpr std::int64_t kLeastSteps = 10;  // of a run that is measured

struct PlanOptions {
  std::string config;
  bool json = false;
  bool measure = false;
  SchemeLibrary schemes = SchemeLibrary::of_environment();
};

struct Limits {
  double cache_copy_gbps, sgemm_gflops;
};
Limits measure_limits(std::int64_t threads) {
  const bench::Options options{.seconds = 0.1, .threads = static_cast<int>(threads)};
  constexpr std::int64_t kSizes[] = {512, 1024};
  return {bench::copy_limit(options, bench::kCacheCopyBytes), bench::sgemm_limit(options, kSizes)};
}

// The least time that each node's operations or bytes take at the machine's limits, one after another.
double predicted_seconds(const Plan& plan, const Limits& limits) {
  const double flops = limits.sgemm_gflops * 1e9, bytes = limits.cache_copy_gbps * 1e9;
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

// The plans of a run, and what they and its data take themselves.
struct PlannedRun {
  explicit PlannedRun(const RunConfig& given) {
    const std::int64_t before = allocated_bytes();
    source = open_data(given);
    config = resolve_config(given, *source);
    check_parameters_fit(config.model);
    step = build_training_step(config.model, step_options(config));
    memory = run_memory(config, step, source->evaluation_batches() > 0);
    program = std::max<std::int64_t>(0, allocated_bytes() - before);
  }

  std::shared_ptr<const Source> source;
  RunConfig config;  // resolved
  TrainingStep step;
  RunMemory memory;
  std::int64_t program = 0;  // bytes
};

// What a process takes whatever it trains: the program, its libraries and the kernels that they compile. A run of one
// layer shows it; with products of the given shapes, whose kernels are the same, unless these are large: then what such
// kernels take does not matter.
std::int64_t process_bytes(const RunConfig& config) {
  const ModelConfig& given = config.model;
  RunConfig least;
  constexpr double kSmall = 1 << 19;  // elements of the stream
  const bool small = static_cast<double>(given.batch) * static_cast<double>(given.time * given.width) <= kSmall;
  least.model.layers = 1;
  least.model.width = small ? given.width : 64;
  least.model.heads = small ? given.heads : 2;
  least.model.batch = small ? given.batch : 8;
  least.model.time = small ? given.time : 32;
  least.train.threads = config.train.threads;
  // Its plans count, and are made here too: what the real ones take is counted on top of them. Made first: shapes that
  // do not fit are refused here, not by a process.
  const std::int64_t tensors = PlannedRun(least).memory.peak();
  return measure_run(least, kLeastSteps).peak_bytes - tensors;
}

json describe_memory(const RunMemory& memory, std::int64_t process, std::int64_t program) {
  const Plan& plan = *memory.training.plan;
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
  return {{"by_kind", by_kind},
          {"activations", plan.transient_bytes()},
          {"least_activations", plan.peak_live_bytes()},
          {"one_member", plan.member_bytes()},
          {"training", memory.training.tensors()},
          {"thread_scratch", memory.training.scratch()},
          {"evaluation", memory.evaluation.bytes()},
          {"judging", memory.judging.bytes()},
          {"snapshots", memory.snapshots},
          {"process", process},
          {"program", program},
          {"total", memory.peak() + process + program},
          {"largest", tensors}};
}

json describe_plan(const RunConfig& given, bool measure) {
  const std::int64_t process = process_bytes(given);
  const PlannedRun run(given);
  const RunConfig& config = run.config;
  const RunMemory& memory = run.memory;
  const Plan& plan = *run.step.plan;
  const Budget budget = model_budget(config.model);
  const std::int64_t count = memory.training.members;
  const double tokens = static_cast<double>(config.model.batch * config.model.time);
  json by_role;
  for (const auto& [role, parameters] : budget.by_role) by_role[role] = parameters;
  json all = {{"scheme", config.model.scheme.asked()},
              {"members", count},
              {"parameters", budget.parameters},
              {"parameters_by_role", by_role},
              {"norm_instances", budget.norm_instances},
              {"norm_parameters", budget.norm_parameters},
              {"memory", describe_memory(memory, process, run.program)},
              {"flops_per_step", budget.flops * static_cast<double>(config.train.accumulate)},
              {"flops_per_token", budget.flops / tokens},
              {"bytes_per_token", plan.cost().bytes / tokens},
              {"kernels", plan.steps().size()}};
  const Limits limits = measure_limits(memory.training.threads);
  const double one = predicted_seconds(plan, limits) * static_cast<double>(config.train.accumulate);
  const double all_members = one * static_cast<double>(count);
  all["limits"] = {{"cache_copy_gbps", limits.cache_copy_gbps}, {"sgemm_gflops", limits.sgemm_gflops}};
  all["predicted"] = {{"seconds_per_step", all_members},
                      {"tokens_per_second", tokens * static_cast<double>(config.train.accumulate) / one},
                      {"seconds", all_members * static_cast<double>(config.train.steps)}};
  if (measure) {
    const auto in_a_second = static_cast<std::int64_t>(std::min(100.0, 1 / all_members));
    const MeasuredRun measured = measure_run(given, std::max(kLeastSteps, in_a_second));
    all["measured"] = {{"memory", measured.peak_bytes}, {"seconds_per_step", measured.seconds_per_step}};
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
  fmt::print("\ntensors of one member {}\n", bytes(memory["one_member"]));
  for (const auto& [kind, size] : memory["by_kind"].items()) fmt::print("  {:<18} {:>14}\n", kind, bytes(size));
  fmt::print("  {:<18} {:>14}  (at least {})\n", "activations", bytes(memory["activations"]),
             bytes(memory["least_activations"]));
  fmt::print("memory of the run {}\n", bytes(memory["total"]));
  for (const auto& [what, key] : {std::pair{"training", "training"},
                                  {"threads", "thread_scratch"},
                                  {"evaluation", "evaluation"},
                                  {"judging", "judging"},
                                  {"snapshots", "snapshots"},
                                  {"plan and data", "program"},
                                  {"norma itself", "process"}}) {
    if (memory[key] == 0) continue;
    const bool in_turn = std::string_view(key) == "judging";
    fmt::print("  {:<18} {:>14}{}\n", what, bytes(memory[key]), in_turn ? "  (instead of evaluation, at the end)" : "");
  }
  fmt::print("the largest tensors:\n");
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
  add_schemes_dir(*verb, options->schemes);
  verb->allow_extras();
  verb->callback([options, verb] {
    RunConfig config = options->config.empty() ? RunConfig() : read_config(options->config, options->schemes);
    apply_overrides(config, verb->remaining(), options->schemes);
    const json all = describe_plan(config, options->measure);
    if (options->json) {
      fmt::print("{}\n", all.dump(2));
    } else {
      print_plan(all);
    }
  });
}

}  // namespace norma::cli
