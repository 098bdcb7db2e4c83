// Ctrl-C and SIGTERM as a request to stop after a checkpoint.
#pragma once

#include <atomic>

namespace norma::cli {

// From now on the first signal sets the returned flag; the second has its usual effect, and a minute ends it.
const std::atomic<bool>& stop_on_signals();

}  // namespace norma::cli
