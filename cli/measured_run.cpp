#include "cli/measured_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "cli/stop.h"
#include "norma/core/error.h"
#include "norma/store/atomic_file.h"
#include "norma/store/metrics.h"
#include "norma/store/run_directory.h"
#include "norma/train/cohort.h"

namespace norma::cli {
namespace {

namespace fs = std::filesystem;

// A folder that is gone afterwards.
class Scratch {
 public:
  Scratch() {
    std::error_code error;
    path_ = (fs::temp_directory_path(error) / "norma-plan-XXXXXX").string();
    if (error) fail("there is no folder for temporary files (TMPDIR, /tmp): {}", error.message());
    if (mkdtemp(path_.data()) == nullptr) fail("cannot make a folder like '{}': {}", path_, std::strerror(errno));
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string operator/(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

struct Ended {
  int status = 0;  // as wait() has it
  std::int64_t peak_bytes = 0;
};

// This program with other arguments; what it says goes to a file.
Ended run_again(std::vector<std::string> arguments, const std::string& said) {
  arguments.insert(arguments.begin(), "norma");
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  const int out = open(said.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (out < 0) fail("cannot write '{}': {}", said, std::strerror(errno));
  const pid_t child = fork();
  if (child == 0) {
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    execv("/proc/self/exe", words.data());
    _exit(127);
  }
  const int error = errno;
  close(out);
  if (child < 0) fail("cannot start a process: {}", std::strerror(error));
  Ended ended;
  rusage usage{};
  const std::atomic<bool>& stop = stop_on_signals();
  for (pid_t found = 0; found != child;) {  // which a signal to this process alone would not reach
    found = wait4(child, &ended.status, WNOHANG, &usage);
    if (found < 0 && errno != EINTR) break;
    if (stop) kill(child, SIGKILL);
    if (found != child) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ended.peak_bytes = usage.ru_maxrss * 1024;
  return ended;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Without the first step, which compiles products, where there are more. Records hold means over all steps so far; a
// run whose members all diverge ends early.
double seconds_per_step(const fs::path& run, std::int64_t tokens) {
  std::int64_t last_step = 0;
  double first = 0, last = 0;
  for (const MetricRecord& record : read_metrics(RunView(run).metrics_path())) {
    if (record.find("tokens_per_second") == nullptr) continue;
    last_step = record.step;
    last = static_cast<double>(record.step * tokens) / record.number("tokens_per_second");
    if (record.step == 1) first = last;
  }
  return last_step > 1 ? (last - first) / static_cast<double>(last_step - 1) : last;
}

}  // namespace

MeasuredRun measure_run(RunConfig config, std::int64_t steps) {
  NORMA_ASSERT(steps > 1);
  const StopScope stops(Stop::when_saved);  // the folder goes first
  const Scratch folder;
  config.train.steps = steps;
  // A scheme of the user's means there what it means here.
  if (const std::shared_ptr<const Scheme> scheme = config.model.scheme.shared(); !scheme->text.empty()) {
    const std::string file = folder / "scheme.toml";
    write_atomically(file, scheme->text);
    config.model.scheme = {file, scheme};
  }
  write_atomically(folder / "run.toml", print_config(config));
  const std::string said = folder / "said", run = folder / "run";
  const Ended ended = run_again({"train", folder / "run.toml", "--out", run, "--quiet"}, said);
  if (stop_on_signals()) throw Stopped();
  if (WIFSIGNALED(ended.status))
    fail("the measured run was ended by signal {}{}", WTERMSIG(ended.status),
         WTERMSIG(ended.status) == SIGKILL ? ": it may have taken more memory than there is" : "");
  if (WEXITSTATUS(ended.status) != 0) fail("the measured run failed: {}", text_of(said));
  return {.peak_bytes = ended.peak_bytes, .seconds_per_step = seconds_per_step(run, tokens_per_step(config))};
}

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0, resident = 0;
  return file >> all >> resident ? resident * sysconf(_SC_PAGESIZE) : 0;
}

}  // namespace norma::cli
