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

// Time of `one` over time of `two`, run in turns so that both see the same machine; the median of many ratios.
template <typename One, typename Two>
double time_ratio(One&& one, Two&& two, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto timed = [](auto& work) {
    const auto before = Clock::now();
    work();
    return std::chrono::duration<double>(Clock::now() - before).count();
  };
  one();
  two();
  std::vector<double> ratios;
  const auto start = Clock::now();
  while (ratios.size() < 15 || std::chrono::duration<double>(Clock::now() - start).count() < seconds) {
    // Each goes first every second time.
    const bool swapped = ratios.size() % 2 == 1;
    const double first = swapped ? timed(two) : timed(one), second = swapped ? timed(one) : timed(two);
    ratios.push_back(swapped ? second / first : first / second);
  }
  std::nth_element(ratios.begin(), ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2), ratios.end());
  return ratios[ratios.size() / 2];
}

}  // namespace norma::bench
