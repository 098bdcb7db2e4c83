#include "device/cpu/barrier.h"

#include <algorithm>

namespace norma {
namespace {

void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

void Patience::wait_while_equal(const std::atomic<std::uint32_t>& word, std::uint32_t old) {
  using Clock = std::chrono::steady_clock;
  const auto changed = [&] { return word.load(std::memory_order_acquire) != old; };
  if (changed()) return;
  if (!own_core_) return word.wait(old, std::memory_order_acquire);
  const Clock::time_point start = Clock::now();
  do {
    for (int i = 0; i < 16; ++i) {
      if (changed()) return;
      pause_core();
    }
  } while (Clock::now() - start < budget_);
  word.wait(old, std::memory_order_acquire);
  budget_ = Clock::now() - start < 2 * kMost ? std::min(budget_ * 2, kMost) : std::max(budget_ / 2, kLeast);
}

Barrier::Barrier(int size)
    : size_(size),
      groups_(static_cast<std::uint32_t>((size + kNear - 1) / kNear)),
      near_(std::make_unique<LonelyWord[]>(groups_)) {}

// Whoever arrives last leaves the counter ready for the next round; nobody else touches it before the generation moves.
bool Barrier::last_of(LonelyWord& counter, std::uint32_t expected) {
  if (counter.value.fetch_add(1, std::memory_order_acq_rel) + 1 != expected) return false;
  counter.value.store(0, std::memory_order_relaxed);
  return true;
}

void Barrier::wait(int worker, Patience& patience) {
  if (size_ == 1) return;
  const std::uint32_t generation = generation_.value.load(std::memory_order_relaxed);
  const int group = worker / kNear;
  const int in_group = std::min(kNear, size_ - group * kNear);
  if (last_of(near_[static_cast<std::size_t>(group)], static_cast<std::uint32_t>(in_group)) && last_of(far_, groups_)) {
    // Sequentially consistent: the look for sleepers inside notify_all must not overtake it.
    generation_.value.store(generation + 1, std::memory_order_seq_cst);
    generation_.value.notify_all();
  } else {
    patience.wait_while_equal(generation_.value, generation);
  }
}

}  // namespace norma
