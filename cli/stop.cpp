#include "cli/stop.h"

#include <unistd.h>

#include <csignal>

namespace norma::cli {
namespace {

std::atomic<bool> requested{false};

// Where nobody looks at the flag, as while a very deep model is planned, the process ends by itself: what is on disk
// survives that as it survives kill -9.
constexpr unsigned kPatience = 60;  // seconds

void request_stop(int signal) {
  requested = true;
  std::signal(signal, SIG_DFL);
  alarm(kPatience);
}

}  // namespace

const std::atomic<bool>& stop_on_signals() {
  std::signal(SIGINT, request_stop);
  std::signal(SIGTERM, request_stop);
  return requested;
}

}  // namespace norma::cli
