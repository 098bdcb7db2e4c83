// Ctrl-C and SIGTERM as a request to stop after a checkpoint.
#pragma once

#include <atomic>

namespace norma::cli {

// From now on the first signal sets the returned flag; the second has its usual effect, and a minute ends it.
const std::atomic<bool>& stop_on_signals();

// A corpus or checkpoint that shrinks while it is read, or whose disk fails, ends the process with a message and exit
// code 2 instead of a signal. What the run has stored is whole.
void report_lost_files();

}  // namespace norma::cli
