// Checks and times the CUDA kernels of convolutions in bf16, and times those of BatchNorm:
//   cuda_images check [seed]   against a reference in double
//   cuda_images time [words]   those whose names have the words
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "bench/cuda/image_case.h"

namespace {

using namespace norma::bench;

constexpr ImagePass kPasses[] = {ImagePass::forward, ImagePass::image, ImagePass::weights};

int check(std::uint64_t seed) {
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
                                                {.batch = 2, .side = 12, .in = 3, .out = 16}};
  int cases = 0, failures = 0;
  for (ConvolutionSetup setup : setups) {
    for (const ImagePass pass : kPasses) {
      setup.pass = pass;
      const KernelCase one = convolution_case(setup);
      std::mt19937_64 random(seed + static_cast<std::uint64_t>(cases++));
      const std::string fault = check_case(one, random);
      failures += fault.empty() ? 0 : 1;
      std::printf("%s %s%s\n", fault.empty() ? "PASS" : "FAIL", one.name.c_str(),
                  fault.empty() ? "" : (": " + fault).c_str());
      std::fflush(stdout);
    }
  }
  std::printf("check: %d cases, %d failed, seed %llu\n", cases, failures, static_cast<unsigned long long>(seed));
  return failures == 0 ? 0 : 1;
}

void time_one(const KernelCase& one, int members, const std::string& words) {
  if (one.name.find(words) == std::string::npos) return;
  const double ms = time_case(one, members);
  std::printf("%9.1f us %7.1f TFLOP/s  x %2d  %s\n", ms * 1e3, one.flops * members / ms / 1e9, members,
              one.name.c_str());
  std::fflush(stdout);
}

int time_all(const std::string& words) {
  const auto shape = [&](ConvolutionSetup setup, int members) {
    for (const ImagePass pass : kPasses) {
      setup.pass = pass;
      time_one(convolution_case(setup), members, words);
    }
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
  const std::string verb = argc > 1 ? argv[1] : "", more = argc > 2 ? argv[2] : "";
  try {
    if (verb == "check") return check(more.empty() ? std::uint64_t{std::random_device()()} : std::stoull(more));
    if (verb == "time") return time_all(more);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::fprintf(stderr, "usage: %s check [seed] | time [words]\n", argv[0]);
  return 2;
}
