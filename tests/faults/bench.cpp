#include "bench.h"

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace norma::faults {

namespace fs = std::filesystem;

Bench::Bench(Programs programs, fs::path folder) : programs_(std::move(programs)), folder_(std::move(folder)) {
  fs::create_directories(folder_);
}

void Bench::clear(const fs::path& start) {
  fs::remove_all(root());
  fs::remove_all(folder_ / "stash");
  fs::create_directories(folder_ / "stash");
  if (start.empty())
    fs::create_directories(root());
  else
    fs::copy(start, root(), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
}

Exit Bench::run_with(const std::vector<std::string>& arguments, std::map<std::string, std::string> environment) const {
  fs::remove(folder_ / "log");
  Start start;
  start.words = {programs_.norma};
  start.words.insert(start.words.end(), arguments.begin(), arguments.end());
  start.words.insert(start.words.end(), {"--out", "out"});
  start.folder = root();  // with relative paths, what is written does not depend on the place
  start.environment = std::move(environment);
  start.error_file = folder_ / "error";
  return faults::run(start);
}

Exit Bench::run(const std::vector<std::string>& arguments, const std::optional<Injection>& injection) const {
  if (!injection) return run_with(arguments, {});
  return run_with(arguments, {{"LD_PRELOAD", programs_.shim},
                              {"NORMA_FAULT_ROOT", root().string()},
                              {"NORMA_FAULT_LOG", (folder_ / "log").string()},
                              {"NORMA_FAULT_STASH", (folder_ / "stash").string()},
                              {"NORMA_FAULT_PLAN", injection->plan},
                              {"NORMA_FAULT_AT", std::to_string(injection->at)}});
}

std::vector<Call> Bench::count_calls(const std::vector<std::string>& arguments) const {
  const Exit exit = run_with(arguments, {{"LD_PRELOAD", programs_.shim},
                                         {"NORMA_FAULT_ROOT", root().string()},
                                         {"NORMA_FAULT_LOG", (folder_ / "log").string()}});
  if (exit.code != 0) throw std::runtime_error("an undisturbed run failed: " + exit.error);
  return log();
}

std::vector<Call> Bench::log() const {
  std::vector<Call> calls;
  std::istringstream lines(text_of(folder_ / "log"));
  for (std::string line; std::getline(lines, line);) {
    Call call;
    std::size_t bytes = 0;
    std::istringstream words(line);
    words >> call.number >> call.kind >> call.name >> bytes >> call.file;
    calls.push_back(call);
  }
  return calls;
}

std::optional<Call> Bench::call_that_was_hit() const {
  const std::vector<Call> calls = log();
  return calls.empty() ? std::nullopt : std::optional(calls.front());
}

}  // namespace norma::faults
