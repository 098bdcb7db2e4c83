#include "inject_plan.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "inject_power.h"

namespace norma::faults {
namespace {

struct Word {
  const char* text;
  Deed deed;
};

constexpr Word kWords[] = {{"kill-before", Deed::kill_before},
                           {"kill-after", Deed::kill_after},
                           {"short-kill", Deed::short_kill},
                           {"error", Deed::error},
                           {"short-write", Deed::short_write},
                           {"full", Deed::full},
                           {"dead", Deed::dead},
                           {"read-only", Deed::read_only},
                           {"power", Deed::power},
                           {"power-data", Deed::power_data},
                           {"power-names", Deed::power_names},
                           {"lie-write", Deed::lie_write},
                           {"lie-rename", Deed::lie_rename}};

Plan plan_of_environment() {
  Plan result;
  result.root = std::getenv("NORMA_FAULT_ROOT");
  result.log = std::getenv("NORMA_FAULT_LOG");
  result.stash = std::getenv("NORMA_FAULT_STASH");
  result.lies_about_sync = std::getenv("NORMA_FAULT_LIE_SYNC") != nullptr;
  const char* const at = std::getenv("NORMA_FAULT_AT");
  const char* const words = std::getenv("NORMA_FAULT_PLAN");
  if (at == nullptr || words == nullptr) return result;
  result.at = std::atol(at);
  const char* const colon = std::strchr(words, ':');
  const std::size_t length = colon == nullptr ? std::strlen(words) : static_cast<std::size_t>(colon - words);
  for (const Word& word : kWords)
    if (std::strlen(word.text) == length && std::strncmp(word.text, words, length) == 0) result.deed = word.deed;
  if (colon != nullptr) result.error = std::atoi(colon + 1);
  if (result.deed == Deed::none || (result.deed == Deed::error && result.error == 0)) {
    std::fprintf(stderr, "NORMA_FAULT_PLAN is '%s', which is no plan\n", words);
    std::_Exit(99);
  }
  return result;
}

// Straight to the kernel: the shim must not count itself.
void append_to_log(const char* text, int length) {
  const int kept = errno;
  const long file = ::syscall(SYS_openat, AT_FDCWD, plan().log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file >= 0) {
    ::syscall(SYS_write, file, text, static_cast<std::size_t>(length));
    ::syscall(SYS_close, file);
  }
  errno = kept;
}

void note(const char* kind, long number, const char* name, const char* file, std::size_t bytes) {
  if (plan().log == nullptr) return;
  char line[kPathSize + 200];
  const char* const below = file + std::strlen(plan().root) + (file[std::strlen(plan().root)] == '/' ? 1 : 0);
  const int length = std::snprintf(line, sizeof line, "%ld %s %s %zu %s\n", number, kind, name, bytes, below);
  append_to_log(line, length);
}

const char* word_of(Kind kind) {
  switch (kind) {
    case Kind::open_to_read: return "open-read";
    case Kind::open_to_write: return "open-write";
    case Kind::read: return "read";
    case Kind::write: return "write";
    case Kind::sync: return "sync";
    case Kind::name: return "name";
    case Kind::lock: return "lock";
    case Kind::close: return "close";
  }
  return "";
}

bool lasts(Deed deed) { return deed == Deed::full || deed == Deed::dead || deed == Deed::read_only; }

bool is_below(const char* file) {
  const std::size_t length = std::strlen(plan().root);
  return std::strncmp(file, plan().root, length) == 0 && (file[length] == '/' || file[length] == '\0');
}

std::atomic<bool> dying = false;  // what the shim does then is none of the program's calls

bool path_of_descriptor(int descriptor, char (&file)[kPathSize]) {
  char link[64];
  if (descriptor == AT_FDCWD)
    std::snprintf(link, sizeof link, "/proc/self/cwd");
  else
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const long length = ::syscall(SYS_readlinkat, AT_FDCWD, link, file, kPathSize - 1);
  if (length < 0) return false;
  file[length] = '\0';
  return true;
}

}  // namespace

const Plan& plan() {
  static const Plan the_plan = plan_of_environment();
  return the_plan;
}

bool keeps_track() {
  const Deed deed = plan().deed;
  return deed == Deed::power || deed == Deed::power_data || deed == Deed::power_names;
}

bool locate(int descriptor, const char* path, char (&file)[kPathSize]) {
  if (plan().root == nullptr || dying) return false;
  const int kept = errno;
  bool found = true;
  if (path != nullptr && path[0] == '/') {
    std::snprintf(file, kPathSize, "%s", path);
  } else {
    found = path_of_descriptor(descriptor, file);
    if (found && path != nullptr) {
      const std::size_t length = std::strlen(file);
      std::snprintf(file + length, kPathSize - length, "/%s", path);
    }
  }
  errno = kept;
  return found && is_below(file);
}

Turn next(Kind kind, const char* name, const char* file, std::size_t bytes) {
  static std::atomic<long> calls = 0;
  const long number = ++calls;
  const Plan& the_plan = plan();
  if (the_plan.deed == Deed::none || number == the_plan.at) note(word_of(kind), number, name, file, bytes);
  const bool now = number == the_plan.at || (number > the_plan.at && lasts(the_plan.deed));
  return now ? Turn{the_plan.deed, number == the_plan.at} : Turn{};
}

void die() {
  dying = true;
  const Deed deed = plan().deed;
  if (deed == Deed::power || deed == Deed::power_data) lose_contents();
  if (deed == Deed::power || deed == Deed::power_names) lose_names();
  ::syscall(SYS_kill, ::getpid(), SIGKILL);
  for (;;) ::pause();
}

}  // namespace norma::faults
