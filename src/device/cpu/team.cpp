#include "device/cpu/team.h"

#include <system_error>

#include "core/memory_limit.h"
#include "device/cpu/sequential_library.h"
#include "norma/core/arena.h"
#include "norma/core/error.h"

namespace norma {
namespace {

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// A kernel phase lasts microseconds: spin for about as long, then let others run, then sleep.
template <typename T>
void wait_while_equal(const std::atomic<T>& word, T old) {
  for (int i = 0; i < 4000; ++i) {
    if (word.load(std::memory_order_acquire) != old) return;
    pause();
  }
  for (int i = 0; i < 200; ++i) {
    if (word.load(std::memory_order_acquire) != old) return;
    std::this_thread::yield();
  }
  word.wait(old, std::memory_order_acquire);
}

// Where address space is scarce, starting a thread does not fail but ends the process.
void check_address_space(int threads) {
  constexpr std::int64_t kStack = std::int64_t{8} << 20, kOthers = std::int64_t{16} << 20;
  const std::int64_t left = address_space();
  if (left != kNoMemoryLimit && left < threads * kStack + kOthers)
    fail(
        "cannot start {} threads: a stack of {} for each, but the limit of address space (ulimit -v) leaves {}; ask "
        "for "
        "fewer threads",
        threads, describe_bytes(kStack), describe_bytes(left));
}

}  // namespace

Team::Team(int size) : size_(size) {
  if (size_ > 1) check_address_space(size_ - 1);
  try {
    for (int worker = 1; worker < size_; ++worker) threads_.emplace_back([this, worker] { worker_loop(worker); });
  } catch (const std::system_error& problem) {  // a limit of the user, the group or the machine
    const std::size_t started = threads_.size() + 1;
    stop();
    fail("cannot start {} threads, only {}: {}; ask for fewer", size_, started, problem.code().message());
  }
}

Team::~Team() { stop(); }

void Team::stop() {
  stop_.store(true, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Team::worker_loop(int worker) {
  const SequentialLibrary sequential;
  std::uint32_t seen = 0;
  for (;;) {
    wait_while_equal(generation_, seen);
    ++seen;
    if (stop_.load(std::memory_order_relaxed)) return;
    (*work_)(worker);
    if (finished_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_ - 1) finished_.notify_one();
  }
}

void Team::run(const std::function<void(int)>& work) {
  const SequentialLibrary sequential;
  if (size_ == 1) return work(0);
  work_ = &work;
  finished_.store(0, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  work(0);
  for (int done = finished_.load(std::memory_order_acquire); done != size_ - 1;
       done = finished_.load(std::memory_order_acquire)) {
    wait_while_equal(finished_, done);
  }
}

void Team::barrier() {
  if (size_ == 1) return;
  const std::uint32_t phase = barrier_phase_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
    arrived_.store(0, std::memory_order_relaxed);
    barrier_phase_.store(phase + 1, std::memory_order_release);
    barrier_phase_.notify_all();
  } else {
    wait_while_equal(barrier_phase_, phase);
  }
}

}  // namespace norma
