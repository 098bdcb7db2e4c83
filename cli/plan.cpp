// norma plan: parameters, memory by tensor and operations of a run, before anything runs; with --measure its time too.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/limits.h"
#include "cli/measured_run.h"
#include "cli/output.h"
#include "cli/overrides.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "norma/train/result.h"
#include "norma/train/run_plan.h"

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

// What a process takes whatever it trains: the program, its libraries and the kernels that they compile. A run of one
// layer shows it; with products of the given shapes, whose kernels are the same, unless these are large: then what such
// kernels take does not matter.
std::int64_t measured_process_bytes(const RunConfig& config) {
  const ModelConfig& given = config.model;
  RunConfig least;
  constexpr double kSmall = 1 << 19;  // elements of the stream, and of a weight
  const double stream = static_cast<double>(given.batch) * static_cast<double>(given.time * given.width);
  const bool small =
      std::max(stream, 4 * static_cast<double>(given.width) * static_cast<double>(given.width)) <= kSmall;
  least.model.layers = 1;
  least.model.width = small ? given.width : 64;
  least.model.heads = small ? given.heads : 2;
  least.model.batch = small ? given.batch : 8;
  least.model.time = small ? given.time : 32;
  least.train.threads = config.train.threads;
  // Its plans count, and are made here too: what the real ones take is counted on top of them. Made first: shapes that
  // do not fit are refused here, not by a process.
  const std::int64_t tensors = plan_run(least).memory.peak;
  return measure_run(least, kLeastSteps).peak_bytes - tensors;
}

json describe_memory(const PlannedMemory& memory, std::int64_t process) {
  json tensors = json::array();
  for (const PlannedTensor& tensor : memory.largest)
    tensors.push_back({{"name", tensor.name}, {"type", tensor.type}, {"kind", tensor.kind}, {"bytes", tensor.bytes}});
  return {{"by_kind", memory.by_kind},
          {"activations", memory.activations},
          {"least_activations", memory.least_activations},
          {"one_member", memory.one_member},
          {"training", memory.training},
          {"thread_scratch", memory.thread_scratch},
          {"evaluation", memory.evaluation},
          {"judging", memory.judging},
          {"snapshots", memory.snapshots},
          {"process", process},
          {"program", memory.program},
          {"total", memory.peak + process + memory.program},
          {"largest", tensors}};
}

json describe_plan(const RunPlan& plan, std::int64_t process) {
  json by_role;
  for (const auto& [role, parameters] : plan.budget.by_role) by_role[role] = parameters;
  const double tokens = plan.tokens_per_step();
  return {{"scheme", plan.config.model.scheme.asked()},
          {"members", plan.members},
          {"parameters", plan.budget.parameters},
          {"parameters_by_role", by_role},
          {"norm_instances", plan.budget.norm_instances},
          {"norm_parameters", plan.budget.norm_parameters},
          {"memory", describe_memory(plan.memory, process)},
          {"flops_per_step", plan.budget.flops * static_cast<double>(plan.config.train.accumulate)},
          {"flops_per_token", plan.budget.flops / tokens},
          {"bytes_per_token", plan.bytes_per_step / tokens},
          {"counted", counted_unit(plan.config.model)},  // what the two before are of
          {"kernels", plan.kernels}};
}

// What only this machine can say: its limits, and how long and how large a run is.
void measure(const RunConfig& given, const RunPlan& plan, json& all) {
  const Limits limits = measure_limits(plan.threads);
  const double step = least_seconds(plan, limits.sgemm_gflops * 1e9, limits.cache_copy_gbps * 1e9);
  const double tokens = plan.tokens_per_step() * static_cast<double>(plan.config.train.accumulate * plan.members);
  all["limits"] = {{"cache_copy_gbps", limits.cache_copy_gbps}, {"sgemm_gflops", limits.sgemm_gflops}};
  all["predicted"] = {{"seconds_per_step", step},
                      {"tokens_per_second", tokens / step},
                      {"seconds", step * static_cast<double>(plan.config.train.steps)}};
  const auto in_a_second = static_cast<std::int64_t>(std::min(100.0, 1 / step));
  const MeasuredRun measured = measure_run(given, std::max(kLeastSteps, in_a_second));
  all["measured"] = {{"memory", measured.peak_bytes}, {"seconds_per_step", measured.seconds_per_step}};
}

void print_plan(const json& all) {
  const auto bytes = [](const json& value) { return bytes_text(value.get<double>()); };
  const int members = all["members"].get<int>();
  print("{} parameters{}\n", with_units(all["parameters"].get<double>()),
        members > 1 ? fmt::format(" in each of {} members", members) : "");
  for (const auto& [role, count] : all["parameters_by_role"].items())
    print("  {:<18} {:>14}\n", role, count.get<std::int64_t>());
  print("norms: {} instances, {} parameters\n", all["norm_instances"].get<int>(),
        all["norm_parameters"].get<std::int64_t>());
  const json& memory = all["memory"];
  print("\ntensors of one member: {}\n", bytes(memory["one_member"]));
  for (const auto& [kind, size] : memory["by_kind"].items()) print("  {:<18} {:>14}\n", kind, bytes(size));
  print("  {:<18} {:>14}  (at least {})\n", "activations", bytes(memory["activations"]),
        bytes(memory["least_activations"]));
  print("memory of the run: {}\n", bytes(memory["total"]));
  for (const auto& [what, key] : {std::pair{"training", "training"},
                                  {"threads", "thread_scratch"},
                                  {"evaluation", "evaluation"},
                                  {"judging", "judging"},
                                  {"snapshots", "snapshots"},
                                  {"plan and data", "program"},
                                  {"norma itself", "process"}}) {
    if (memory[key] == 0) continue;
    const bool in_turn = std::string_view(key) == "judging";
    print("  {:<18} {:>14}{}\n", what, bytes(memory[key]), in_turn ? "  (instead of evaluation, at the end)" : "");
  }
  print("the largest tensors:\n");
  for (std::size_t i = 0; i < std::min<std::size_t>(8, memory["largest"].size()); ++i) {
    const json& tensor = memory["largest"][i];
    print("  {:>10}  {:<10} {} {}\n", bytes(tensor["bytes"]), tensor["kind"].get<std::string>(),
          tensor["name"].get<std::string>(), tensor["type"].get<std::string>());
  }
  print("\n{} operations and {} of memory traffic per {}, {} kernels per step\n",
        with_units(all["flops_per_token"].get<double>()), bytes(all["bytes_per_token"]),
        all["counted"].get<std::string>(), all["kernels"].get<int>());
  if (!all.contains("measured")) {
    print("norma plan --measure tells how long a step takes\n");
    return;
  }
  const json& predicted = all["predicted"];
  print("at {:.0f} GFLOP/s and {:.0f} GB/s in cache, a step takes at least {:.3g} ms and the run {}\n",
        all["limits"]["sgemm_gflops"].get<double>(), all["limits"]["cache_copy_gbps"].get<double>(),
        predicted["seconds_per_step"].get<double>() * 1e3, duration_text(predicted["seconds"].get<double>()));
  print("measured: {:.3g} ms per step, {}\n", all["measured"]["seconds_per_step"].get<double>() * 1e3,
        bytes(all["measured"]["memory"]));
}

}  // namespace

void add_plan(CLI::App& app, int&) {
  const auto options = std::make_shared<PlanOptions>();
  CLI::App* verb = app.add_subcommand("plan", "Parameters, memory, operations and time of a run, before it runs");
  verb->add_option("config", options->config, "TOML file; without it the embedded default run")->type_name(kFile);
  verb->add_flag("--json", options->json, "Print JSON");
  verb->add_flag("--measure", options->measure,
                 "Take a few steps in a temporary folder: time, and memory to compare with");
  add_schemes_dir(*verb, options->schemes);
  add_run_options(*verb);
  add_model_family(*verb);
  add_device(*verb);
  take_keys(*verb, "Any key of the configuration: --model.layers=48 --model.width=1024");
  verb->callback([options, verb] {
    RunConfig config = options->config.empty()
                           ? RunConfig()
                           : read_config(config_file(options->config, options->schemes), options->schemes);
    apply_overrides(config, overrides_of(*verb), options->schemes);
    // Before anything is planned, what this process has is the program and its libraries.
    Progress progress(options->json);
    progress.at(options->measure ? "measuring runs of a few steps" : "planning");
    const std::int64_t process = options->measure ? measured_process_bytes(config) : resident_bytes();
    const RunPlan plan = plan_run(config);
    json all = describe_plan(plan, process);
    if (options->measure) measure(config, plan, all);
    progress.clear();
    if (options->json) {
      write_json(all.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
    } else {
      print_plan(all);
    }
  });
}

}  // namespace norma::cli
