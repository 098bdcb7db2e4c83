// Checks and times the CUDA kernels of convolutions in bf16, and times those of BatchNorm:
//   cuda_images check [seed] [words]   against a reference in double, or in large shapes against other kernels
//   cuda_images time [words]
// Only those whose names have the words. A name is printed before its kernel runs, and what hangs ends the program.
#include <unistd.h>

#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "bench/cuda/image_case.h"

namespace {

using namespace norma::bench;

constexpr ImagePass kPasses[] = {ImagePass::forward, ImagePass::image, ImagePass::weights};

constexpr unsigned kMostSeconds = 20;  // of one case; usual are milliseconds, or a second where the CPU computes

// Whether a case is wanted; then its name is out, and time runs.
bool begin_case(const std::string& name, const std::string& words) {
  if (name.find(words) == std::string::npos) return false;
  std::printf("%-82s ", name.c_str());
  std::fflush(stdout);
  alarm(kMostSeconds);
  return true;
}

struct Count {
  int cases = 0, failures = 0;

  void end_case(const std::string& fault) {
    ++cases, failures += fault.empty() ? 0 : 1;
    std::printf("%s%s\n", fault.empty() ? "PASS" : "FAIL: ", fault.c_str());
    std::fflush(stdout);
  }
};

// Every way of every pass: each(setup).
template <typename Each>
void every_way(ConvolutionSetup setup, const Each& each) {
  for (const ImagePass pass : kPasses) {
    setup.pass = pass, setup.way = ImageWay::chosen;
    for (const ImageWay way : ways_of(setup)) {
      setup.way = way;
      each(setup);
    }
  }
}

// Blocks of these walk over several tiles: there are 132 of them, and more than one is resident in no kernel of im2col.
void check_walks(Count& count, const std::string& words) {
  struct Walk {
    ConvolutionSetup setup;
    int members = 1;
  };
  const std::vector<Walk> walks = {{{.batch = 256, .side = 32, .in = 64, .out = 64}, 1},
                                   {{.batch = 37, .side = 32, .in = 64, .out = 64}, 3},
                                   {{.batch = 128, .side = 8, .in = 64, .out = 64}, 33},
                                   {{.batch = 33, .side = 8, .in = 64, .out = 64}, 33},
                                   {{.batch = 9, .side = 8, .in = 64, .out = 64}, 140},
                                   {{.batch = 200, .side = 16, .in = 128, .out = 128}, 1},
                                   {{.batch = 96, .side = 8, .in = 256, .out = 256}, 5},
                                   {{.batch = 256, .side = 4, .in = 512, .out = 512}, 3},
                                   {{.batch = 64, .side = 16, .in = 128, .out = 64}, 3},
                                   {{.batch = 64, .side = 32, .in = 64, .out = 128, .stride = 2}, 3},
                                   {{.batch = 67, .side = 16, .in = 128, .out = 256, .stride = 2}, 3},
                                   {{.batch = 64, .side = 32, .in = 64, .out = 128, .kernel = 1, .stride = 2}, 3},
                                   {{.batch = 65, .side = 16, .in = 320, .out = 64, .kernel = 1}, 3},
                                   {{.batch = 96, .side = 16, .in = 64, .out = 64, .kernel = 1}, 5},
                                   {{.batch = 50, .side = 9, .in = 72, .out = 136, .width = 11}, 7}};
  for (const Walk& walk : walks) {
    every_way(walk.setup, [&](ConvolutionSetup setup) {
      if (setup.way == ImageWay::older) return;
      const KernelCase one = convolution_case(setup);
      if (!begin_case(one.name + ", members " + std::to_string(walk.members), words)) return;
      setup.way = ImageWay::older;
      count.end_case(compare_cases(one, convolution_case(setup), walk.members));
    });
  }
}

int check(std::uint64_t seed, const std::string& words) {
  const std::vector<ConvolutionSetup> setups = {{.batch = 2, .side = 32},
                                                {.batch = 3, .side = 16, .in = 32, .out = 32},
                                                {.batch = 1, .side = 64},
                                                {.batch = 2, .side = 16, .in = 64, .out = 64},
                                                {.batch = 1, .side = 32, .in = 64, .out = 64},
                                                {.batch = 1, .side = 64, .in = 64, .out = 64},
                                                {.batch = 4, .side = 8, .in = 64, .out = 128},
                                                {.batch = 16, .side = 4, .in = 128, .out = 64},
                                                {.batch = 3, .side = 8, .in = 64, .out = 64},
                                                {.batch = 2, .side = 9, .in = 24, .out = 40},
                                                {.batch = 2, .side = 8, .in = 64, .out = 128, .stride = 2},
                                                {.batch = 2, .side = 8, .in = 16, .out = 32, .kernel = 1, .stride = 2},
                                                {.batch = 2, .side = 12, .in = 3, .out = 16},
                                                {.batch = 1, .side = 8, .in = 64, .out = 64},
                                                {.batch = 3, .side = 7, .in = 64, .out = 72, .width = 9},
                                                {.batch = 3, .side = 4, .in = 72, .out = 128},
                                                {.batch = 2, .side = 32, .in = 64, .out = 64},
                                                {.batch = 2, .side = 8, .in = 64, .out = 64, .width = 38},
                                                {.batch = 3, .side = 5, .in = 64, .out = 64, .width = 33},
                                                {.batch = 4, .side = 8, .in = 128, .out = 128},
                                                {.batch = 1, .side = 8, .in = 192, .out = 256},
                                                {.batch = 4, .side = 4, .in = 256, .out = 192},
                                                {.batch = 4, .side = 8, .in = 128, .out = 72, .stride = 2},
                                                {.batch = 3, .side = 6, .in = 64, .out = 264, .stride = 2, .width = 10},
                                                {.batch = 3, .side = 7, .in = 64, .out = 64, .stride = 2},
                                                {.batch = 4, .side = 8, .in = 64, .out = 128, .kernel = 1, .stride = 2},
                                                {.batch = 1, .side = 8, .in = 320, .out = 64, .kernel = 1},
                                                {.batch = 24, .side = 16, .in = 64, .out = 64, .kernel = 1},
                                                {.batch = 23, .side = 16, .in = 64, .out = 64}};
  Count count;
  for (const ConvolutionSetup& setup : setups) {
    every_way(setup, [&](const ConvolutionSetup& way) {
      if (way.way == ImageWay::older) return;  // other shapes check them
      const KernelCase one = convolution_case(way);
      std::mt19937_64 random(seed + static_cast<std::uint64_t>(count.cases));
      if (begin_case(one.name, words)) count.end_case(check_case(one, random));
    });
  }
  check_walks(count, words);
  std::printf("check: %d cases, %d failed, seed %llu\n", count.cases, count.failures,
              static_cast<unsigned long long>(seed));
  return count.failures == 0 ? 0 : 1;
}

void time_one(const KernelCase& one, int members, const std::string& words) {
  if (!begin_case(one.name + ", members " + std::to_string(members), words)) return;
  const double ms = time_case(one, members);
  std::printf("%9.1f us %7.1f TFLOP/s\n", ms * 1e3, one.flops * members / ms / 1e9);
  std::fflush(stdout);
}

int time_all(const std::string& words) {
  const auto shape = [&](const ConvolutionSetup& setup, int members) {
    every_way(setup, [&](const ConvolutionSetup& way) { time_one(convolution_case(way), members, words); });
    const std::int64_t side = setup.side / setup.stride;
    if (setup.kernel == 1) return;
    for (const bool backward : {false, true})
      time_one(batch_norm_case(setup.batch * side * side, setup.out, backward), members, words);
  };
  shape({.batch = 256, .side = 32, .in = 64, .out = 64}, 1);
  shape({.batch = 256, .side = 16, .in = 128, .out = 128}, 1);
  shape({.batch = 256, .side = 8, .in = 256, .out = 256}, 1);
  shape({.batch = 256, .side = 4, .in = 512, .out = 512}, 1);
  shape({.batch = 256, .side = 32, .in = 64, .out = 128, .stride = 2}, 1);
  shape({.batch = 256, .side = 16, .in = 128, .out = 256, .stride = 2}, 1);
  shape({.batch = 256, .side = 8, .in = 256, .out = 512, .stride = 2}, 1);
  shape({.batch = 256, .side = 32, .in = 64, .out = 128, .kernel = 1, .stride = 2}, 1);
  for (const int members : {1, 32}) {
    shape({.batch = 128, .side = 32, .in = 3, .out = 16}, members);
    shape({.batch = 128, .side = 32, .in = 16, .out = 16}, members);
    shape({.batch = 128, .side = 16, .in = 32, .out = 32}, members);
    shape({.batch = 128, .side = 8, .in = 64, .out = 64}, members);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int index) { return std::string(argc > index ? argv[index] : ""); };
  const std::string verb = argument(1), more = argument(2);
  try {
    if (verb == "check")
      return check(more.empty() ? std::uint64_t{std::random_device()()} : std::stoull(more), argument(3));
    if (verb == "time") return time_all(more);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::fprintf(stderr, "usage: %s check [seed] [words] | time [words]\n", argv[0]);
  return 2;
}
