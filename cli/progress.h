// What is being done right now, so that no command is ever silent: one line that is redrawn on a terminal, a plain line
// now and then where there is none. All of it goes to standard error.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace norma::cli {

class Progress {
 public:
  // A quiet one shows nothing but warnings.
  explicit Progress(bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  struct Now {
    std::string what = {};
    std::optional<double> share = {};         // of the whole command that is done
    std::optional<double> seconds_left = {};  // of the whole; without it, it follows from the share
  };
  // From any thread.
  void at(Now now);
  void at(std::string what) { at(Now{.what = std::move(what)}); }

  // A line that stays.
  void say(const std::string& line);
  void warn(const std::string& what);  // also where it is quiet
  // What stands on the terminal goes; nothing is shown until the next at().
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  void tick();
  void show();   // with mutex_ held, as all that follows
  void erase();  // the line on the terminal
  std::string line() const;
  double seconds_since(Clock::time_point then) const;

  const bool quiet_, live_;
  std::mutex mutex_;
  std::optional<Now> now_;
  double first_share_ = 0;  // of a command that goes on where another was stopped
  Clock::time_point began_ = Clock::now(), measured_from_ = began_, shown_ = began_;
  bool drawn_ = false, ended_ = false;
  std::condition_variable wake_;
  std::thread ticker_;  // last: it uses the others
};

}  // namespace norma::cli
