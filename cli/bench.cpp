// norma bench: kernels and steps against this machine's measured limits.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench/graphs.h"
#include "bench/images.h"
#include "bench/kernels.h"
#include "bench/limits.h"
#include "bench/steps.h"
#include "bench/theory.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "cli/verbs.h"
#include "norma/backends/device.h"
#include "norma/core/error.h"
#include "norma/core/json_depth.h"
#include "norma/core/machine.h"
#include "norma/version.h"
#ifdef NORMA_CUDA
#include "bench/gpu.h"
#endif

namespace norma::cli {
namespace {

namespace fs = std::filesystem;

struct BenchOptions {
  bench::Options measure;
  std::string only = "all";
  std::string peer;
  std::string out;
  std::string device = "cpu";
  bool json = false;
};

nlohmann::json read_peer(const std::string& path) {
  std::ifstream file(path);
  if (!file) fail("--peer: cannot read '{}'", path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  if (!is_shallow_json(text))
    fail("--peer: '{}' is nested too deeply for the JSON that bench/pytorch_cpu.py prints", path);
  nlohmann::json peer = nlohmann::json::parse(text, nullptr, false);
  const bool usable = peer.is_object() && peer.contains("results") && peer["results"].is_array();
  if (!usable) fail("--peer: '{}' is not the JSON that bench/pytorch_cpu.py prints", path);
  for (const nlohmann::json& entry : peer["results"]) {
    const bool complete = entry.is_object() && entry.contains("name") && entry["name"].is_string() &&
                          entry.contains("unit") && entry["unit"].is_string() && entry.contains("value") &&
                          entry["value"].is_number();
    if (!complete) fail("--peer: '{}' has a result without name, unit and value: {}", path, entry.dump());
  }
  return peer;
}

// Date, machine and version, so that a file of results explains itself.
nlohmann::json describe_run(const std::string& device, const nlohmann::json& results) {
  nlohmann::json all = {{"norma", NORMA_VERSION},
                        {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
                        {"device", describe(parse_device(device))},
                        {"cores", machine().cores},
                        {"instruction_set", machine().instruction_set}};
  all.update(results);
  return all;
}

// Written beside, then renamed: a reader never sees half a file.
fs::path write_results(const std::string& folder, const std::string& device, const nlohmann::json& all) {
  const fs::path target =
      fs::path(folder) / fmt::format("{}-{:%Y-%m-%d-%H%M%S}.json", device, fmt::gmtime(std::time(nullptr)));
  std::error_code error;
  fs::create_directories(folder, error);
  const fs::path temporary = target.string() + ".part";
  std::ofstream file(temporary);
  file << all.dump(2) << '\n';
  file.close();
  if (!file) fail("--out: cannot write to '{}'", folder);
  fs::rename(temporary, target, error);
  if (error) fail("--out: cannot write '{}': {}", target.string(), error.message());
  return target;
}

// Where the training steps are measured against the card instead of this machine.
void measure_gpu([[maybe_unused]] bench::Report& report, [[maybe_unused]] const bench::Options& options) {
  resolve(Device::cuda);  // says why where it cannot be used
#ifdef NORMA_CUDA
  note("measuring limits of the GPU ...\n");
  bench::measure_gpu_limits(report, options);
  note("measuring training steps on it ...\n");
  bench::bench_gpu_steps(report, options);
#endif
}

// Some results bring what they are compared with, measured in turns with them.
bool needs_limits(const std::string& match) {
  return !match.starts_with("split/") && !match.starts_with("scales/") && !match.starts_with("plan/");
}

void measure_cpu(const BenchOptions& options, bench::Report& report) {
  Progress display(false);
  const auto progress = [&](const char* what) {
    display.say(fmt::format("measuring {} ...", what));
    display.at(fmt::format("measuring {}", what));
  };
  const auto wanted = [&](const char* part) { return options.only == "all" || options.only == part; };
  if (needs_limits(options.measure.match)) {
    progress("limits");
    bench::measure_limits(report, options.measure);
  }
  if (wanted("norms")) {
    progress("norms");
    bench::bench_norms(report, options.measure);
    bench::bench_conditions(report, options.measure);
  }
  if (wanted("attention")) {
    progress("attention");
    bench::bench_attention(report, options.measure);
  }
  if (wanted("graphs")) {
    progress("graphs");
    bench::bench_graphs(report, options.measure);
  }
  if (wanted("convolutions")) {
    progress("convolutions");
    bench::bench_convolutions(report, options.measure);
  }
  if (wanted("steps")) {
    progress("training steps");
    bench::bench_steps(report, options.measure);
    bench::bench_images(report, options.measure);
  }
  if (wanted("theory")) {
    progress("theory");
    bench::bench_theory(report, options.measure);
  }
}

// Ctrl-C shows what has been measured so far, at once: a measurement of seconds need not end for that. It is no whole
// run, so only a folder that was named keeps it.
class PartialResults {
 public:
  PartialResults(const BenchOptions& options, const bench::Report& report)
      : options_(options), report_(report), stop_(stop_on_signals()), watcher_([this] { watch(); }) {}
  ~PartialResults() {
    ended_ = true;
    watcher_.join();
  }
  PartialResults(const PartialResults&) = delete;
  PartialResults& operator=(const PartialResults&) = delete;

 private:
  void watch() const {
    while (!ended_) {
      if (stop_) show();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  [[noreturn]] void show() const {
    nlohmann::json all = describe_run(options_.device, report_.json());
    all["interrupted"] = true;
    try {
      if (!options_.out.empty())
        note("results so far written to {}\n", write_results(options_.out, options_.device, all).string());
    } catch (const Error& error) {
      note("norma: {}\n", error.what());
    }
    options_.json ? write_json(all.dump(2) + "\n")
                  : print("{}\ninterrupted: what was not measured is not in the table\n", report_.table());
    flush_out();
    std::_Exit(kStoppedCode);  // measuring goes on in other threads
  }

  const BenchOptions& options_;
  const bench::Report& report_;
  const StopScope scope_{Stop::when_saved};
  const std::atomic<bool>& stop_;
  std::atomic<bool> ended_{false};
  std::thread watcher_;  // last: it uses the others
};

void measure(const BenchOptions& options, bench::Report& report) {
  const PartialResults partial(options, report);
  parse_device(options.device) == Device::cuda ? measure_gpu(report, options.measure) : measure_cpu(options, report);
}

void run_bench(const BenchOptions& options) {
  // Checked before minutes of measuring.
  const nlohmann::json peer = options.peer.empty() ? nlohmann::json() : read_peer(options.peer);
  bench::Report report;
  measure(options, report);
  if (report.empty() && !options.measure.match.empty()) {
    fail("--match: nothing{} has '{}' in its name; norma bench without it lists every name",
         options.only == "all" ? "" : " among " + options.only, options.measure.match);
  }
  if (!peer.is_null()) report.attach_peer(peer);
  const nlohmann::json all = describe_run(options.device, report.json());
  // A run of one part does not stand for the machine: it is kept only where a folder is named.
  const bool whole = options.only == "all" && options.measure.match.empty();
  const bool keeps = options.out.empty() && whole && fs::is_directory("bench/results");
  const std::string folder = keeps ? "bench/results" : options.out;
  if (!folder.empty()) note("results written to {}\n", write_results(folder, options.device, all).string());
  options.json ? write_json(all.dump(2) + "\n") : print("{}", report.table());
}

}  // namespace

void add_bench(CLI::App& app, int&) {
  const auto options = std::make_shared<BenchOptions>();
  CLI::App* verb = app.add_subcommand("bench", "Measure kernels and training steps against this machine's limits");
  verb->add_flag("--json", options->json, "Print JSON instead of a table");
  verb->add_option("--only", options->only, "Part to measure")
      ->type_name("all|limits|norms|attention|graphs|convolutions|steps|theory")
      ->check(CLI::IsMember({"all", "limits", "norms", "attention", "graphs", "convolutions", "steps", "theory"}));
  verb->add_option("--match", options->measure.match, "Only what has this text in its name");
  verb->add_option("--seconds", options->measure.seconds, "Time per measurement")->check(CLI::Range(0.001, 600.0));
  verb->add_option("--threads", options->measure.threads, "0: all cores")->check(CLI::Range(0, kMostThreads));
  verb->add_option(
          "--device", options->device,
          "cuda: training steps on a GPU, and where their time goes; auto takes a GPU where there is one (cpu)")
      ->type_name("auto|cpu|cuda");
  verb->add_option("--peer", options->peer, "Results of bench/pytorch_cpu.py to compare with")->type_name(kFile);
  verb->add_option("--out", options->out,
                   "Folder for the results; those of a whole run go to bench/results where that exists")
      ->type_name(kFolder);
  verb->callback([options] {
    options->device = name_of(resolve(parse_device(options->device)));
    run_bench(*options);
  });
}

}  // namespace norma::cli
