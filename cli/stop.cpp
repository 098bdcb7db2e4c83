#include "cli/stop.h"

#include <csignal>

namespace norma::cli {
namespace {

std::atomic<bool> requested{false};

void request_stop(int signal) {
  requested = true;
  std::signal(signal, SIG_DFL);
}

}  // namespace

const std::atomic<bool>& stop_on_signals() {
  std::signal(SIGINT, request_stop);
  std::signal(SIGTERM, request_stop);
  return requested;
}

}  // namespace norma::cli
