// Ctrl-C and SIGTERM: every verb answers at once, and nothing that has been done is lost.
#pragma once

#include <atomic>

namespace norma::cli {

inline constexpr int kStoppedCode = 130;  // of a process that was asked to stop

// What a signal does now.
enum class Stop {
  at_once,     // ends the process, with a word and exit code 130: nothing is lost that is not on disk already
  when_saved,  // says so and sets the flag: there is work to be saved first. A second signal ends it at once, and so
               // does a minute
};

// From now on; Stop::at_once to begin with. The flag is set by a signal in Stop::when_saved.
const std::atomic<bool>& stop_on_signals();
void set_stop(Stop how);

// Thrown where a verb ends because of the flag; the program then ends with kStoppedCode.
struct Stopped {};

// Another way to stop for as long as it lives.
class StopScope {
 public:
  explicit StopScope(Stop how);
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

 private:
  Stop before_;
};

// A corpus or checkpoint that shrinks while it is read, or whose disk fails, ends the process with a message and exit
// code 2 instead of a signal. What the run has stored is whole.
void report_lost_files();

}  // namespace norma::cli
