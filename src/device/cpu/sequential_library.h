// oneDNN runs on OpenMP. The tiles of a phase are our parallelism, so inside a team every library call must be
// single-threaded: that also fixes its order of summation, hence its bits, for any number of threads.
#pragma once

namespace norma {

// While alive, OpenMP regions opened by this thread have one thread. Restores the host program's setting after.
class SequentialLibrary {
 public:
  SequentialLibrary();
  ~SequentialLibrary();
  SequentialLibrary(const SequentialLibrary&) = delete;
  SequentialLibrary& operator=(const SequentialLibrary&) = delete;

 private:
  int outer_;
};

}  // namespace norma
