#include "cli/stop.h"

#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstring>

#include "norma/core/mapped_ranges.h"

namespace norma::cli {
namespace {

std::atomic<bool> requested{false};
std::atomic<Stop> how_to_stop{Stop::at_once};
static_assert(std::atomic<Stop>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

// Where nobody looks at the flag, as while a very deep model is planned, the process ends by itself: what is on disk
// survives that as it survives kill -9.
constexpr unsigned kPatience = 60;  // seconds

void say(const char* text) {
  const ssize_t ignored = write(STDERR_FILENO, text, std::strlen(text));
  static_cast<void>(ignored);
}

void give_up(int) { _exit(kStoppedCode); }

// On a stack of its own: matrix products of oneDNN let the stack pointer point at a buffer on the heap while they run,
// and a handler on the stack of such a thread writes over what lies before it. The kernel sends signals of the process
// to the main thread, so one stack will do.
void handle(int signal, void (*handler)(int)) {
  static std::byte stack[64 * 1024];
  const stack_t own{.ss_sp = stack, .ss_flags = 0, .ss_size = sizeof stack};
  sigaltstack(&own, nullptr);
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_ONSTACK | SA_RESTART;
  sigaction(signal, &action, nullptr);
}

void request_stop(int) {
  if (how_to_stop == Stop::at_once || requested) {
    say("\nnorma: stopped\n");
    _exit(kStoppedCode);
  }
  requested = true;
  say("\nstopping: what has been done is being saved; Ctrl-C again stops at once\n");
  std::signal(SIGALRM, give_up);  // does not return, so it may write where it likes
  alarm(kPatience);
}

// Called in the middle of anything: only what is allowed there.
void report_lost_file(int signal, siginfo_t* info, void*) {
  const char* const path = mapped_path_at(info->si_addr);
  if (path == nullptr) {
    std::signal(signal, SIG_DFL);  // happens again, and ends the process
    return;
  }
  say("norma: '");
  say(path);
  say("' became shorter while it was read, or its disk fails; with the file as it was, the same command goes on from "
      "the last checkpoint\n");
  _exit(2);
}

}  // namespace

void report_lost_files() {
  struct sigaction action {};
  action.sa_sigaction = report_lost_file;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

const std::atomic<bool>& stop_on_signals() {
  static const bool handled = [] {  // by the main thread, at the beginning
    for (const int signal : {SIGINT, SIGTERM}) handle(signal, request_stop);
    return true;
  }();
  static_cast<void>(handled);
  return requested;
}

void set_stop(Stop how) { how_to_stop = how; }

StopScope::StopScope(Stop how) : before_(how_to_stop.exchange(how)) {}
StopScope::~StopScope() { how_to_stop = before_; }

}  // namespace norma::cli
