// Runs the norma program as its users do.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "temporary_folder.h"

namespace norma::test {

struct Outcome {
  int code = -1;   // exit code, or -1 when a signal ended it
  int signal = 0;  // that ended it
  std::string out, err;
};

class Process {
 public:
  // Output goes to files in `folder`.
  Process(const TemporaryFolder& folder, std::vector<std::string> arguments)
      : out_(folder / ("out" + std::to_string(++count()))), err_(folder / ("err" + std::to_string(count()))) {
    arguments.insert(arguments.begin(), NORMA_PROGRAM);
    std::vector<char*> words;
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      redirect(out_, STDOUT_FILENO);
      redirect(err_, STDERR_FILENO);
      execv(words[0], words.data());
      _exit(127);
    }
  }

  void send(int signal) const { kill(pid_, signal); }

  Outcome wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    Outcome outcome{.out = read_file(out_), .err = read_file(err_)};
    if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
    return outcome;
  }

 private:
  static int& count() {
    static int processes = 0;
    return processes;
  }
  static void redirect(const std::string& path, int descriptor) {
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(file, descriptor);
    close(file);
  }

  std::string out_, err_;
  pid_t pid_;
};

inline Outcome run(const TemporaryFolder& folder, std::vector<std::string> arguments) {
  return Process(folder, std::move(arguments)).wait();
}

}  // namespace norma::test
