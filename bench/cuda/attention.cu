// Checks and times the CUDA kernels of attention and cross-entropy:
//   cuda_attention check [seed]   against references in double
//   cuda_attention time           milliseconds and TFLOP/s: of the products that the definition needs, without those
//                                 that are computed again
#include <cstdio>
#include <cstdlib>
#include <string>

#include "bench/cuda/attention_case.h"
#include "bench/cuda/cross_entropy_case.h"
#include "bench/cuda/device.h"

namespace {

using namespace norma::bench;
using norma::cuda::AttentionMath;
using norma::cuda::KeyMask;

std::vector<AttentionSetup> setups_to_check() {
  constexpr auto full = KeyMask::full, causal = KeyMask::causal;
  constexpr auto separate = AttentionWires::separate, packed = AttentionWires::packed;
  std::vector<AttentionSetup> all = {
      {.queries = 1, .width = 1},
      {.batch = 2, .queries = 7, .keys = 13, .heads = 3, .width = 5, .mask = full, .wires = separate},
      {.batch = 2, .queries = 130, .keys = 1, .width = 16, .mask = full, .wires = separate},
      {.batch = 2, .queries = 1, .keys = 200, .heads = 2, .width = 64, .mask = full, .wires = separate},
      {.batch = 2, .queries = 33, .heads = 4, .kv_heads = 2, .width = 8},
      {.batch = 3, .queries = 32, .heads = 4, .width = 8},
      {.batch = 2, .queries = 64, .heads = 2, .width = 16, .mask = full},
      {.batch = 2, .queries = 65, .heads = 6, .kv_heads = 2, .width = 16, .wires = separate},
      {.batch = 2, .queries = 128, .heads = 4, .width = 32},
      {.batch = 2, .queries = 128, .heads = 2, .width = 64, .mask = full},
      {.batch = 1, .queries = 129, .heads = 3, .kv_heads = 1, .width = 64},
      {.batch = 1, .queries = 97, .keys = 161, .heads = 2, .width = 100, .mask = full, .wires = separate},
      {.batch = 1, .queries = 150, .heads = 2, .width = 128},
      {.batch = 1, .queries = 70, .heads = 2, .kv_heads = 1, .width = 250},
      {.batch = 1, .queries = 90, .heads = 1, .width = 256, .mask = full, .wires = separate},
      {.batch = 1, .queries = 300, .heads = 2, .width = 32},  // more rows per warp from here on
      {.batch = 1, .queries = 385, .heads = 1, .width = 64},
      {.batch = 1, .queries = 320, .keys = 77, .heads = 2, .width = 60, .mask = full, .wires = separate},
      {.batch = 2, .queries = 40, .heads = 2, .width = 16, .wires = separate, .scale = -0.3},
      {.batch = 2, .queries = 40, .heads = 2, .width = 20, .scale = 0.7, .shift = 4},
      {.batch = 2, .queries = 80, .heads = 2, .width = 32, .mask = full, .wires = separate, .shift = 8},
      {.batch = 5, .queries = 70, .heads = 2, .width = 32, .mask = full, .lengths = {70, 0, 33, 1, 64}},
      {.batch = 5, .queries = 70, .heads = 2, .width = 64, .mask = causal, .lengths = {99, -3, 33, 1, 64}},
  };
  for (const AttentionOutputs only :
       {AttentionOutputs::first, AttentionOutputs::second, AttentionOutputs::third, AttentionOutputs::no_lse}) {
    all.push_back({.batch = 2, .queries = 75, .heads = 2, .width = 24, .wires = separate, .outputs = only});
  }
  for (const int queries : {20, 100, 270}) {
    for (const KeyMask mask : {full, causal}) {
      all.push_back({.batch = 3,
                     .queries = queries,
                     .heads = 2,
                     .width = 32,
                     .mask = mask,
                     .wires = packed,
                     .lengths = {queries, 0, 11},
                     .poison = AttentionPoison::hidden});
    }
    for (const int width : {12, 64}) {
      all.push_back({.batch = 2, .queries = queries, .heads = 2, .width = width, .poison = AttentionPoison::future});
    }
  }
  all.push_back({.batch = 1, .queries = 50, .heads = 2, .width = 200, .poison = AttentionPoison::future});
  return all;
}

std::vector<CrossEntropySetup> rows_to_check() {
  std::vector<CrossEntropySetup> all;
  for (const auto& [rows, classes] : {std::pair<std::int64_t, std::int64_t>{5, 3},
                                      {37, 65},
                                      {100, 256},
                                      {9, 1027},
                                      {12, 2048},
                                      {7, 50257},
                                      {3000, 16},
                                      {1, 1}}) {
    for (const double smoothing : {0.0, 0.1}) {
      for (const CrossEntropyTargets targets : {CrossEntropyTargets::ordinary, CrossEntropyTargets::some_ignored,
                                                CrossEntropyTargets::one_unknown, CrossEntropyTargets::all_ignored}) {
        all.push_back({rows, classes, smoothing, targets});
      }
    }
  }
  all.push_back({40, 64, 0.1, CrossEntropyTargets::some_ignored, 4});
  all.push_back({40, 4096, 0, CrossEntropyTargets::some_ignored, 8});
  return all;
}

int check(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  int cases = 0, failures = 0;
  const auto check_one = [&](const KernelCase& kernel_case) {
    const std::string fault = check_case(kernel_case, random);
    ++cases;
    failures += fault.empty() ? 0 : 1;
    std::printf("%s %s%s\n", fault.empty() ? "PASS" : "FAIL", kernel_case.name.c_str(),
                fault.empty() ? "" : (": " + fault).c_str());
    std::fflush(stdout);
  };
  for (const AttentionMath math : {AttentionMath::f32, AttentionMath::tf32, AttentionMath::bf16}) {
    for (AttentionSetup setup : setups_to_check()) {
      setup.math = math;
      check_one(attention_forward_case(setup));
      check_one(attention_backward_case(setup));
    }
  }
  for (const CrossEntropySetup& setup : rows_to_check()) {
    check_one(cross_entropy_case(setup));
    check_one(cross_entropy_backward_case(setup));
  }
  std::printf("check: %d cases, %d failed, seed %llu\n", cases, failures, static_cast<unsigned long long>(seed));
  return failures == 0 ? 0 : 1;
}

void time_one(const KernelCase& kernel_case, int members) {
  const double ms = time_case(kernel_case, members);
  std::printf("%9.4f ms %8.2f TFLOP/s %8.1f GB/s  x %2d  %s\n", ms, kernel_case.flops * members / ms / 1e9,
              static_cast<double>(kernel_case.bytes) * members / ms / 1e6, members, kernel_case.name.c_str());
  std::fflush(stdout);
}

int time_all() {
  const auto both = [](const AttentionSetup& setup, int members) {
    time_one(attention_forward_case(setup), members);
    time_one(attention_backward_case(setup), members);
  };
  both({.math = AttentionMath::bf16, .batch = 32, .queries = 1024, .heads = 12, .width = 64}, 1);
  both({.math = AttentionMath::bf16, .batch = 8, .queries = 4096, .heads = 12, .width = 64}, 1);
  both({.math = AttentionMath::bf16, .batch = 8, .queries = 2048, .heads = 8, .width = 128}, 1);
  for (const AttentionMath math : {AttentionMath::f32, AttentionMath::tf32}) {
    both({.math = math, .batch = 16, .queries = 1024, .heads = 12, .width = 64}, 1);
    for (const int members : {1, 16, 64}) {
      both({.math = math, .batch = 16, .queries = 128, .heads = 4, .width = 32}, members);
      both({.math = math, .batch = 32, .queries = 128, .heads = 4, .width = 64}, members);
    }
    for (const int members : {1, 64}) {
      both({.math = math, .batch = 32, .queries = 32, .heads = 4, .width = 8}, members);
      both({.math = math, .batch = 32, .queries = 64, .heads = 2, .width = 16}, members);
    }
  }
  for (const std::int64_t classes : {256, 50304}) {
    const CrossEntropySetup setup{.rows = classes == 256 ? 32768 : 8192, .classes = classes};
    time_one(cross_entropy_case(setup), 1);
    time_one(cross_entropy_backward_case(setup), 1);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  try {
    if (verb == "check") return check(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : std::random_device()());
    if (verb == "time") return time_all();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::fprintf(stderr, "usage: %s check [seed] | time\n", argv[0]);
  return 2;
}
