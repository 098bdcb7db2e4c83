// Runs the norma program as its users do.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "places.h"
#include "temporary_folder.h"

namespace norma::test {

struct Ended {
  int code = -1;   // exit code, or -1 when a signal ended it
  int signal = 0;  // that ended it
  std::string out, err;
};

class Process {
 public:
  // Output goes to files in `folder`, which exist before the process does: it may be killed at any moment.
  Process(const TemporaryFolder& folder, std::vector<std::string> arguments)
      : out_(folder / ("out" + std::to_string(++count()))), err_(folder / ("err" + std::to_string(count()))) {
    arguments.insert(arguments.begin(), test::kProgram);
    std::vector<char*> words;
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    const int out = create(out_), err = create(err_);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(out, STDOUT_FILENO);
      dup2(err, STDERR_FILENO);
      execv(words[0], words.data());
      _exit(127);
    }
    close(out);
    close(err);
  }

  void send(int signal) const { kill(pid_, signal); }

  Ended wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    Ended outcome{.out = read_file(out_), .err = read_file(err_)};
    if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
    return outcome;
  }

 private:
  static int& count() {
    static int processes = 0;
    return processes;
  }
  static int create(const std::string& path) {
    return open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  }

  std::string out_, err_;
  pid_t pid_;
};

inline Ended run(const TemporaryFolder& folder, std::vector<std::string> arguments) {
  return Process(folder, std::move(arguments)).wait();
}

// Runs the program again and again, killing it at random moments, until it ends by itself; says how often it was
// killed. It is left alone for at most `share` of the time that `straight`, a run without kills, took, and for longer
// and longer when a busy machine keeps it from getting on. `observe` is called after every kill.
template <typename Observe>
int kill_until_done(const TemporaryFolder& folder, const std::vector<std::string>& arguments,
                    std::chrono::duration<double> straight, double share, Observe observe) {
  std::mt19937 random(std::random_device{}());
  for (int kills = 0; kills < 2000; ++kills) {
    Process process(folder, arguments);
    const double patience = share * (1 + kills / 40);
    std::this_thread::sleep_for(straight * std::uniform_real_distribution<double>(0, patience)(random));
    process.send(kills % 4 == 3 ? SIGTERM : SIGKILL);
    const Ended outcome = process.wait();
    if (outcome.code == 0) return kills;
    const bool stopped = outcome.signal == SIGKILL || outcome.signal == SIGTERM || outcome.code == 130;
    if (!stopped) throw std::runtime_error("exit code " + std::to_string(outcome.code) + ": " + outcome.err);
    if (observe()) return kills + 1;
  }
  throw std::runtime_error("no progress in 2000 starts");
}

// `verb --out out` with a model that trains in seconds, and `more`.
inline std::vector<std::string> small_model(const std::string& verb, const std::string& out,
                                            const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {verb,
                                        "--out",
                                        out,
                                        "--quiet",
                                        "--model.layers=2",
                                        "--model.width=16",
                                        "--model.heads=2",
                                        "--model.batch=4",
                                        "--model.time=12"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace norma::test
