// Checks and times the CUDA kernels of the row norms:
//   cuda_norms check [reduced] [seed]     against a reference in double
//   cuda_norms time [commit] [out.json]   as shares of the card's copy bandwidth, in the same run
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>

#include "bench/cuda/device.h"
#include "bench/cuda/row_check.h"
#include "bench/cuda/row_timing.h"

namespace {

using namespace norma::bench;

int check(int argc, char** argv) {
  const bool reduced = argc > 2 && std::string(argv[2]) == "reduced";
  const int seed_at = reduced ? 3 : 2;
  const std::uint64_t seed = argc > seed_at ? std::strtoull(argv[seed_at], nullptr, 10) : std::random_device()();
  return check_row_norms(reduced ? CheckExtent::reduced : CheckExtent::whole, seed) == 0 ? 0 : 1;
}

int time(int argc, char** argv) {
  const RowTimings timings = time_row_norms();
  std::printf("%s", table_of(timings).c_str());
  if (argc > 3) std::ofstream(argv[3]) << json_of(timings, argv[2]);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  try {
    if (verb == "check") return check(argc, argv);
    if (verb == "time") return time(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::fprintf(stderr, "usage: %s check [reduced] [seed] | time [commit out.json]\n", argv[0]);
  return 2;
}
