#include "device/cpu/team.h"

#include "device/cpu/sequential_library.h"
#include "norma/core/machine.h"

namespace norma {

Team::Team(int size) : patience_(static_cast<std::size_t>(size), PatienceOfOne{Patience(size <= machine().cores)}) {
  for (int worker = 1; worker < size; ++worker) threads_.emplace_back([this, worker] { worker_loop(worker); });
}

Team::~Team() {
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
    (*work_)(worker);
    if (finished_.value.fetch_add(1, std::memory_order_seq_cst) + 1 == others) finished_.value.notify_one();
  }
}

void Team::run(const std::function<void(int)>& work) {
  const SequentialLibrary sequential;
  if (size() == 1) return work(0);
  work_ = &work;
  finished_.value.store(0, std::memory_order_relaxed);
  generation_.value.fetch_add(1, std::memory_order_seq_cst);
  generation_.value.notify_all();
  work(0);
  const auto others = static_cast<std::uint32_t>(size() - 1);
  for (std::uint32_t done = finished_.value.load(std::memory_order_acquire); done != others;
       done = finished_.value.load(std::memory_order_acquire)) {
    patience(0).wait_while_equal(finished_.value, done);
  }
}

}  // namespace norma
