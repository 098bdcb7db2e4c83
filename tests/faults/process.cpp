#include "process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace norma::faults {
namespace {

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> environment_with(const std::map<std::string, std::string>& more) {
  std::vector<std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) all.emplace_back(*variable);
  for (const auto& [name, value] : more) all.push_back(name + "=" + value);
  return all;
}

pid_t spawn(const Start& start) {
  std::vector<std::string> words = start.words, variables = environment_with(start.environment);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, start.error_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0666);
  posix_spawn_file_actions_addchdir_np(&actions, start.folder.c_str());
  pid_t child = 0;
  const int failed =
      posix_spawn(&child, words[0].c_str(), &actions, nullptr, pointers(words).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw std::runtime_error("cannot start '" + words[0] + "'");
  return child;
}

bool ends_within(pid_t child, std::chrono::seconds limit) {
  const int descriptor = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  if (descriptor < 0) throw std::runtime_error("pidfd_open failed; Linux 5.3 has it");
  pollfd ended{descriptor, POLLIN, 0};
  const int ready = ::poll(&ended, 1, static_cast<int>(std::chrono::milliseconds(limit).count()));
  ::close(descriptor);
  return ready == 1;
}

}  // namespace

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

Exit run(const Start& start) {
  const pid_t child = spawn(start);
  Exit exit;
  if (!ends_within(child, start.limit)) {
    exit.hung = true;
    ::kill(child, SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status)) exit.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) exit.signal = WTERMSIG(status);
  exit.error = text_of(start.error_file);
  constexpr std::size_t kMost = 2000;
  if (exit.error.size() > kMost) exit.error.erase(0, exit.error.size() - kMost);
  return exit;
}

}  // namespace norma::faults
