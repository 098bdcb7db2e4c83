// norma_faults: injects faults into the file system calls of norma train, sweep and study, one at a time, and checks
// that nothing is lost: the same command, repeated, comes to the same end. See docs/reliability.md.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "faults.h"
#include "trial.h"

namespace norma::faults {
namespace {

namespace fs = std::filesystem;

struct Options {
  Programs programs;
  std::string scratch, only, plan, place;
  std::size_t sample = 0;
  unsigned seed = 1;
  int jobs = 2;
  bool every = false, no_damage = false, only_damage = false;
  int minutes = 0;
  long at = 0;
};

class Ledger {
 public:
  explicit Ledger(std::size_t expected) : expected_(expected) {}

  void add(const Fault& fault, const Outcome& outcome) {
    const std::lock_guard lock(mutex_);
    ++by_scenario_[fault.scenario->name][outcome.verdict];
    ++by_fault_[fault.name][outcome.verdict];
    ++done_;
    if (is_failure(outcome.verdict)) {
      ++failures_;
      fmt::print("{}: {} ({}): {}\n", word_of(outcome.verdict), fault.repro, fault.place, outcome.why.substr(0, 400));
      std::fflush(stdout);
    }
    if (done_ % 200 == 0) {
      fmt::print("{} of {}, {} failures\n", done_, expected_, failures_);
      std::fflush(stdout);
    }
  }

  void print() const {
    print_table("scenario", by_scenario_);
    print_table("fault", by_fault_);
    fmt::print("\n{} faults, {} failures\n", done_, failures_);
  }

  std::size_t failures() const { return failures_; }

 private:
  using Counts = std::map<Verdict, long>;

  static void print_table(const char* first, const std::map<std::string, Counts>& rows) {
    fmt::print("\n| {} | faults |", first);
    for (int v = 0; v < kVerdicts; ++v) fmt::print(" {} |", word_of(static_cast<Verdict>(v)));
    fmt::print("\n|---|---|");
    for (int v = 0; v < kVerdicts; ++v) fmt::print("---|");
    fmt::print("\n");
    for (const auto& [name, counts] : rows) {
      long sum = 0;
      for (const auto& [verdict, count] : counts) sum += count;
      fmt::print("| {} | {} |", name, sum);
      for (int v = 0; v < kVerdicts; ++v) {
        const auto found = counts.find(static_cast<Verdict>(v));
        fmt::print(" {} |", found == counts.end() ? 0 : found->second);
      }
      fmt::print("\n");
    }
  }

  std::mutex mutex_;
  std::map<std::string, Counts> by_scenario_, by_fault_;
  std::size_t expected_, done_ = 0, failures_ = 0;
};

std::vector<Fault> chosen(const std::vector<Scenario>& scenarios, const Options& options) {
  std::vector<Fault> faults;
  for (const Scenario& scenario : scenarios) {
    const std::vector<Fault> more =
        faults_of(scenario, options.seed, options.every ? Thoroughness::every : Thoroughness::usual);
    faults.insert(faults.end(), more.begin(), more.end());
  }
  std::erase_if(faults, [&](const Fault& fault) {
    const bool other_plan = !options.plan.empty() && fault.name != options.plan && fault.damage.how != options.plan;
    const bool other_call = options.at > 0 && (fault.injections.empty() || fault.injections[0].at != options.at);
    const bool other_kind = fault.state == nullptr ? options.only_damage : options.no_damage;
    return other_plan || other_call || other_kind || fault.place.find(options.place) == std::string::npos;
  });
  std::mt19937 random(options.seed);  // always, so that a run that is cut short has tried some of everything
  std::shuffle(faults.begin(), faults.end(), random);
  if (options.sample > 0 && options.sample < faults.size()) faults.resize(options.sample);
  return faults;
}

int faults_main(const Options& options) {
  setpriority(PRIO_PROCESS, 0, 10);
  const fs::path scratch = fs::path(options.scratch) / fmt::format("norma-faults-{}", getpid());
  Bench first(options.programs, scratch / "bench-0");
  const std::vector<Scenario> scenarios = prepare(first, scratch / "starts", options.only);
  const std::vector<Fault> faults = chosen(scenarios, options);
  for (const Scenario& scenario : scenarios) fmt::print("{}: {} calls\n", scenario.name, scenario.calls.size());
  fmt::print("{} faults\n", faults.size());
  std::fflush(stdout);
  Ledger ledger(faults.size());
  std::atomic<std::size_t> next = 0;
  const auto limit =
      std::chrono::steady_clock::now() + std::chrono::minutes(options.minutes > 0 ? options.minutes : 10'000);
  const auto work = [&](int worker) {
    Bench bench(options.programs, scratch / fmt::format("bench-{}", worker));
    for (std::size_t i = next++; i < faults.size() && std::chrono::steady_clock::now() < limit; i = next++)
      ledger.add(faults[i], try_fault(bench, faults[i]));
  };
  std::vector<std::thread> threads;
  for (int worker = 0; worker < options.jobs; ++worker) threads.emplace_back(work, worker);
  for (std::thread& thread : threads) thread.join();
  ledger.print();
  if (options.at == 0)
    fs::remove_all(scratch);
  else
    fmt::print("the folder is kept: {}\n", (scratch / "bench-0").string());
  return ledger.failures() == 0 ? 0 : 1;
}

}  // namespace
}  // namespace norma::faults

int main(int count, char** words) {
  norma::faults::Options options;
  options.programs = {NORMA_PROGRAM, NORMA_SHIM};
  options.scratch = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  CLI::App app("Injects faults into the file system calls of norma, one at a time");
  app.add_option("--norma", options.programs.norma, "The program")->capture_default_str();
  app.add_option("--scratch", options.scratch, "A folder for many small files")->capture_default_str();
  app.add_option("--sample", options.sample, "So many faults, chosen at random; 0: all");
  app.add_option("--seed", options.seed, "Of the choice");
  app.add_option("--jobs", options.jobs, "Side by side")->check(CLI::Range(1, 64))->capture_default_str();
  app.add_option("--only", options.only, "This scenario");
  app.add_option("--plan", options.plan, "This fault");
  app.add_option("--place", options.place, "Only where the call or the file has this in its name");
  app.add_flag("--every", options.every, "Every fault at every call, and more flipped bits");
  app.add_option("--minutes", options.minutes, "Stop after so long; 0: when all are done");
  app.add_flag("--no-damage", options.no_damage, "No files damaged between two starts");
  app.add_flag("--only-damage", options.only_damage, "Nothing else");
  app.add_option("--at", options.at, "This call; the folder is kept");
  CLI11_PARSE(app, count, words);
  try {
    return norma::faults::faults_main(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "norma_faults: {}\n", error.what());
    return 2;
  }
}
