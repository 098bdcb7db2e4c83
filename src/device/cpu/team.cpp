#include "device/cpu/team.h"

#include <system_error>

#include "core/memory_limit.h"
#include "device/cpu/sequential_library.h"
#include "norma/core/arena.h"
#include "norma/core/error.h"
#include "norma/core/machine.h"

namespace norma {
namespace {

// Where address space is scarce, starting a thread does not fail but ends the process.
void check_address_space(int threads) {
  constexpr std::int64_t kStack = std::int64_t{8} << 20, kOthers = std::int64_t{16} << 20;
  const std::int64_t left = address_space();
  if (left != kNoMemoryLimit && left < threads * kStack + kOthers)
    fail(
        "cannot start {} threads: {} of stack each, but the limit of address space (ulimit -v) leaves {}; ask for "
        "fewer",
        threads, describe_bytes(kStack), describe_bytes(left));
}

}  // namespace

Team::Team(int size) : patience_(static_cast<std::size_t>(size), PatienceOfOne{Patience(size <= machine().cores)}) {
  if (size > 1) check_address_space(size - 1);
  try {
    for (int worker = 1; worker < size; ++worker) threads_.emplace_back([this, worker] { worker_loop(worker); });
  } catch (const std::system_error& problem) {  // a limit of the user, the group or the machine
    const std::size_t started = threads_.size() + 1;
    stop();
    fail("cannot start {} threads, only {}: {}; ask for fewer", size, started, problem.code().message());
  }
}

Team::~Team() { stop(); }

void Team::stop() {
  stop_.store(true, std::memory_order_relaxed);
  generation_.value.fetch_add(1, std::memory_order_seq_cst);
  generation_.value.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Team::worker_loop(int worker) {
  const SequentialLibrary sequential;
  const auto others = static_cast<std::uint32_t>(size() - 1);
  std::uint32_t seen = 0;
  for (;;) {
    patience(worker).wait_while_equal(generation_.value, seen);
    ++seen;
    if (stop_.load(std::memory_order_relaxed)) return;
    job_(worker);
    if (finished_.value.fetch_add(1, std::memory_order_seq_cst) + 1 == others) finished_.value.notify_one();
  }
}

void Team::run(Job job) {
  const SequentialLibrary sequential;
  if (size() == 1) return job(0);
  job_ = job;
  finished_.value.store(0, std::memory_order_relaxed);
  generation_.value.fetch_add(1, std::memory_order_seq_cst);
  generation_.value.notify_all();
  job(0);
  const auto others = static_cast<std::uint32_t>(size() - 1);
  for (std::uint32_t done = finished_.value.load(std::memory_order_acquire); done != others;
       done = finished_.value.load(std::memory_order_acquire)) {
    patience(0).wait_while_equal(finished_.value, done);
  }
}

}  // namespace norma
