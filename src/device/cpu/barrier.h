// How threads wait for each other for microseconds: a barrier whose words have cache lines of their own, and a wait
// that spins only as long as spinning has paid.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

namespace norma {

// Neighbouring lines are fetched in pairs.
constexpr std::size_t kApart = 128;

struct alignas(kApart) LonelyWord {
  std::atomic<std::uint32_t> value{0};
};

// How long one thread spins before it sleeps. A wait that was short after all lengthens it and a long one halves it, so
// that a thread whose partner has no core (more threads than cores, other processes) soon gives its own away. Never
// below kLeast, longer than most phases last: being woken takes up to 100 microseconds on a virtual machine, and a
// thread that slept through every short wait would find each of them long.
class Patience {
 public:
  explicit Patience(bool own_core = true) : own_core_(own_core) {}
  void wait_while_equal(const std::atomic<std::uint32_t>& word, std::uint32_t old);

 private:
  static constexpr std::chrono::nanoseconds kMost{100'000}, kLeast{20'000};
  bool own_core_;
  std::chrono::nanoseconds budget_ = kMost / 2;
};

// Nobody passes before all have arrived. Arrivals are counted in fours and then once more: sixteen threads that add to
// one word wait for its line sixteen times.
class Barrier {
 public:
  explicit Barrier(int size);
  int size() const { return size_; }
  void wait(int worker, Patience& patience);

 private:
  static constexpr int kNear = 4;
  static bool last_of(LonelyWord& counter, std::uint32_t expected);

  int size_;
  std::uint32_t groups_;
  std::unique_ptr<LonelyWord[]> near_;
  LonelyWord far_;
  LonelyWord generation_;
};

}  // namespace norma
