// Checks and times the CUDA kernels of attention and cross-entropy:
//   cuda_attention check [seed] [words]  against references in double
//   cuda_attention time [words]          milliseconds and TFLOP/s: of the products that the definition needs, without
//                                        those that are computed again
// Words: only cases whose name contains them. A case's inputs follow from the seed and its name.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "bench/cuda/attention_case.h"
#include "bench/cuda/cross_entropy_case.h"
#include "bench/cuda/device.h"

namespace {

using namespace norma::bench;
using norma::cuda::AttentionMath;
using norma::cuda::KeyMask;

// Sequences over 128 with heads of 33 to 64, which have kernels of their own on some GPUs.
void add_long(std::vector<AttentionSetup>& all) {
  constexpr auto full = KeyMask::full, causal = KeyMask::causal;
  constexpr auto separate = AttentionWires::separate;
  all.push_back({.batch = 2, .queries = 256, .heads = 4, .width = 64});
  all.push_back({.batch = 1, .queries = 200, .keys = 333, .heads = 2, .width = 64, .mask = full, .wires = separate});
  all.push_back({.batch = 1, .queries = 40, .keys = 190, .heads = 2, .width = 40, .mask = full, .wires = separate});
  all.push_back({.batch = 1, .queries = 260, .heads = 4, .kv_heads = 2, .width = 48});
  all.push_back({.batch = 1, .queries = 180, .heads = 2, .width = 64, .scale = -0.2});
  all.push_back({.batch = 1, .queries = 320, .heads = 4, .width = 64, .mask = full, .context = true});
  all.push_back({.batch = 33, .queries = 90, .keys = 333, .heads = 4, .width = 64, .mask = full, .wires = separate});
  all.push_back({.batch = 1, .queries = 500, .heads = 4, .width = 64, .scale = -0.2});
  all.push_back({.batch = 1, .queries = 1000, .heads = 2, .width = 64, .context = true});
  for (const AttentionOutputs only :
       {AttentionOutputs::first, AttentionOutputs::second, AttentionOutputs::third, AttentionOutputs::no_lse}) {
    all.push_back({.batch = 1, .queries = 140, .heads = 2, .width = 64, .wires = separate, .outputs = only});
  }
  for (const KeyMask mask : {full, causal}) {
    const std::vector<int> lengths = {270, 0, 11, 130, 192};
    all.push_back({.batch = 5,
                   .queries = 270,
                   .heads = 1,
                   .width = 64,
                   .mask = mask,
                   .lengths = lengths,
                   .poison = AttentionPoison::hidden});
  }
  for (const AttentionPoison poison : {AttentionPoison::none, AttentionPoison::future}) {
    all.push_back({.batch = 2, .queries = 300, .heads = 3, .width = 64, .poison = poison, .context = true});
    all.push_back({.batch = 33, .queries = 140, .heads = 4, .width = 64, .poison = poison, .context = true});
  }
}

// Short sequences of so many heads that one block has a head; with the context, all its gradients in one pass.
void add_many_heads(std::vector<AttentionSetup>& all) {
  constexpr auto full = KeyMask::full, causal = KeyMask::causal;
  constexpr auto separate = AttentionWires::separate;
  constexpr int kBatch = 23, kHeads = 4;
  std::vector<int> lengths;
  for (int sample = 0; sample < kBatch; ++sample) lengths.push_back(sample * 37 % 130);
  const auto add = [&](AttentionSetup setup) {
    setup.batch = kBatch;
    setup.heads = kHeads;
    setup.context = true;
    all.push_back(setup);
  };
  for (const KeyMask mask : {full, causal}) {
    for (const auto& [queries, width] :
         std::vector<std::pair<int, int>>{{128, 32}, {127, 24}, {100, 16}, {64, 32}, {33, 16}}) {
      add({.queries = queries, .width = width, .mask = mask});
    }
    add({.queries = 128, .width = 32, .mask = mask, .lengths = lengths, .poison = AttentionPoison::hidden});
    add({.queries = 64, .width = 16, .mask = mask, .lengths = lengths, .poison = AttentionPoison::hidden});
  }
  for (const auto& [queries, width] : std::vector<std::pair<int, int>>{{128, 32}, {101, 16}, {60, 32}}) {
    add({.queries = queries, .width = width, .poison = AttentionPoison::future});
  }
  add({.queries = 100, .keys = 50, .width = 32, .mask = full, .wires = separate});
  add({.queries = 1, .keys = 128, .width = 32, .mask = full, .wires = separate});
  add({.queries = 128, .keys = 1, .width = 16, .mask = full, .wires = separate});
  add({.queries = 90, .width = 32, .scale = -0.3});
  for (const AttentionOutputs only : {AttentionOutputs::first, AttentionOutputs::second, AttentionOutputs::third}) {
    add({.queries = 75, .width = 32, .wires = separate, .outputs = only});
  }
  // A block goes from head to head.
  for (const AttentionPoison poison : {AttentionPoison::none, AttentionPoison::future}) {
    all.push_back({.batch = 100, .queries = 72, .heads = 4, .width = 16, .poison = poison, .context = true});
  }
  lengths.resize(100, 31);
  all.push_back({.batch = 100,
                 .queries = 80,
                 .heads = 4,
                 .width = 32,
                 .mask = full,
                 .lengths = lengths,
                 .poison = AttentionPoison::hidden,
                 .context = true});
}

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
  // Two tiles of one head, each in a block of its own where the context is given.
  for (const int width : {16, 32, 64}) {
    for (const AttentionPoison poison : {AttentionPoison::none, AttentionPoison::future}) {
      all.push_back({.batch = 2, .queries = 128, .heads = 3, .width = width, .poison = poison, .context = true});
      all.push_back({.batch = 2, .queries = 101, .heads = 2, .width = width, .poison = poison, .context = true});
    }
    all.push_back({.batch = 2, .queries = 128, .heads = 2, .width = width, .mask = full, .context = true});
    all.push_back({.batch = 3,
                   .queries = 120,
                   .heads = 2,
                   .width = width,
                   .lengths = {120, 0, 70},
                   .poison = AttentionPoison::hidden,
                   .context = true});
  }
  add_many_heads(all);
  add_long(all);
  return all;
}

std::vector<CrossEntropySetup> rows_to_check() {
  std::vector<CrossEntropySetup> all;
  const std::vector<std::pair<std::int64_t, std::int64_t>> shapes = {{5, 3},     {37, 65},   {100, 256}, {9, 1027},
                                                                     {12, 2048}, {7, 50257}, {3000, 16}, {1, 1}};
  for (const auto& [rows, classes] : shapes) {
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

bool named(const KernelCase& kernel_case, const std::string& words) {
  return kernel_case.name.find(words) != std::string::npos;
}

int check(std::uint64_t seed, const std::string& words) {
  int cases = 0, failures = 0;
  const auto check_one = [&](const KernelCase& kernel_case) {
    if (!named(kernel_case, words)) return;
    std::seed_seq from(kernel_case.name.begin(), kernel_case.name.end());
    std::uint64_t own = 0;
    from.generate(&own, &own + 1);
    std::mt19937_64 random(seed + own);
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

void time_one(const KernelCase& kernel_case, int members, const std::string& words) {
  if (!named(kernel_case, words)) return;
  const double ms = time_case(kernel_case, members);
  std::printf("%9.4f ms %8.2f TFLOP/s %8.1f GB/s  x %2d  %s\n", ms, kernel_case.flops * members / ms / 1e9,
              static_cast<double>(kernel_case.bytes) * members / ms / 1e6, members, kernel_case.name.c_str());
  std::fflush(stdout);
}

int time_all(const std::string& words) {
  const auto both = [&](AttentionSetup setup, int members) {
    time_one(attention_forward_case(setup), members, words);
    time_one(attention_backward_case(setup), members, words);
    if (setup.math != AttentionMath::bf16) return;
    setup.context = true;
    time_one(attention_backward_case(setup), members, words);
  };
  both({.math = AttentionMath::bf16, .batch = 32, .queries = 1024, .heads = 12, .width = 64}, 1);
  both({.math = AttentionMath::bf16, .batch = 8, .queries = 4096, .heads = 12, .width = 64}, 1);
  both({.math = AttentionMath::bf16, .batch = 8, .queries = 2048, .heads = 8, .width = 128}, 1);
  for (const AttentionMath math : {AttentionMath::bf16, AttentionMath::f32, AttentionMath::tf32}) {
    if (math != AttentionMath::bf16) both({.math = math, .batch = 16, .queries = 1024, .heads = 12, .width = 64}, 1);
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
    time_one(cross_entropy_case(setup), 1, words);
    time_one(cross_entropy_backward_case(setup), 1, words);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int index) { return std::string(argc > index ? argv[index] : ""); };
  const std::string verb = argument(1);
  try {
    if (verb == "check") {
      return check(argc > 2 ? std::stoull(argument(2)) : std::uint64_t{std::random_device()()}, argument(3));
    }
    if (verb == "time") return time_all(argument(2));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::fprintf(stderr, "usage: %s check [seed] [words] | time [words]\n", argv[0]);
  return 2;
}
