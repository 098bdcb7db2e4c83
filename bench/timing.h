// Timing by repetition. The minimum estimates what the code costs; the median shows how noisy the machine was.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

namespace norma::bench {

struct Timing {
  double best = 0;    // seconds
  double median = 0;  // seconds
};

// Repeats `work` for about `seconds`, at least five times, after one run to warm up.
template <typename Work>
Timing time_repeated(Work&& work, double seconds) {
  using Clock = std::chrono::steady_clock;
  work();
  std::vector<double> times;
  const auto start = Clock::now();
  while (times.size() < 5 || std::chrono::duration<double>(Clock::now() - start).count() < seconds) {
    const auto before = Clock::now();
    work();
    times.push_back(std::chrono::duration<double>(Clock::now() - before).count());
  }
  std::sort(times.begin(), times.end());
  return {times.front(), times[times.size() / 2]};
}

}  // namespace norma::bench
