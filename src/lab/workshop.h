// Jobs side by side that share the threads of the machine: each has a team of its own, and the threads of a job that
// has ended go to those still at work. For jobs whose results do not depend on how many threads they have.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

namespace norma {

class Workshop {
 public:
  // At most `at_once` jobs at a time, with `threads` threads between them, at least one each.
  Workshop(int threads, int at_once);

  // How many threads the job at this place may use now; asked as often as it likes.
  using Threads = std::function<int()>;

  // Runs job(0, ...) to job(count - 1, ...) in this order. The first that throws keeps others from beginning;
  // `failed` is called once, so that those under way can be told to end, and what was thrown is thrown again when all
  // have.
  void run(std::size_t count, const std::function<void(std::size_t job, const Threads& threads)>& job,
           const std::function<void()>& failed);

  // The same for jobs that leave nothing under way: one that throws is run once more, alone, after all others have
  // ended, since what it lacked may be free then. What it throws that time is thrown to the caller.
  void run_each(std::size_t count, const std::function<void(std::size_t job, const Threads& threads)>& job);

 private:
  int threads_at(std::size_t place);

  int threads_;
  std::mutex mutex_;
  std::vector<char> busy_;  // by place
};

// Parts of one job of a workshop, job(0) to job(count - 1), on as many threads as the job may use at the time: more
// join while parts wait and threads come free, and leave when others need them. On the caller's thread where `threads`
// is empty. What the first of them throws is thrown when all have ended.
void spread(std::size_t count, const Workshop::Threads& threads, const std::function<void(std::size_t)>& part);

}  // namespace norma
