// What a step takes from the heap. norma takes nothing; oneDNN takes a little for each product it runs, which its
// interface leaves no way around.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "device/cpu/gemm.h"
#include "norma/backends/cpu.h"
#include "norma/backends/device.h"
#include "norma/device/cpu/backend.h"
#include "norma/device/session.h"
#include "norma/graph/differentiate.h"
#include "norma/norms/row.h"
#include "norma/ops/activation.h"
#include "norma/ops/attention.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduce.h"
#include "norma/train/step.h"

namespace {

std::atomic<std::int64_t> allocations{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  void* const memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// Of this whole process, its libraries included. The compiler sees only one half of the pair inlined.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void* operator new(std::size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace norma {
namespace {

// Of one run, after others have made whatever is made once.
std::int64_t allocations_of_a_run(Session& session, Watching watching) {
  for (int run = 0; run < 3; ++run) session.run(watching);
  const std::int64_t before = allocations;
  session.run(watching);
  return allocations - before;
}

// Of one product by itself, with everything that one may have.
std::int64_t allocations_of_a_product() {
  GemmShape shape = row_major_gemm(16, 16, 16, false, false);
  shape.bias = shape.accumulate = true;
  const auto gemm = make_gemm(shape, DType::f32);
  const std::vector<float> a(256, 1.0f), b(256, 1.0f), bias(16, 1.0f);
  std::vector<float> c(256, 0.0f);
  std::vector<std::byte> worker(static_cast<std::size_t>(gemm->worker_bytes()) + 64);
  const auto run = [&] { gemm->run(a.data(), b.data(), bias.data(), c.data(), worker.data()); };
  run();
  const std::int64_t before = allocations;
  run();
  return allocations - before;
}

// A block of the head's backward pass makes two products.
std::int64_t products_of(const Plan& plan) {
  constexpr std::array<std::string_view, 4> products = {"linear", "matmul", "linear_cross_entropy",
                                                        "linear_cross_entropy_backward"};
  std::int64_t count = 0;
  for (const Step& step : plan.steps()) {
    const std::string_view op = plan.nodes()[static_cast<std::size_t>(step.node)].op->name();
    if (std::find(products.begin(), products.end(), op) == products.end()) continue;
    for (const Phase& phase : static_cast<const CpuProgram&>(*step.kernel).phases)
      count += phase.tiles * (op == products.back() ? 2 : 1);
  }
  return count;
}

TEST(Allocations, AreCounted) {
  const std::int64_t before = allocations;
  ::operator delete(::operator new(1));
  EXPECT_EQ(allocations, before + 1);
}

TEST(Allocations, AStepWithoutProductsTakesNothing) {
  Graph graph;
  const Wire x = graph.input("x", {{4, 33, 96}, DType::f32});
  const Wire normed =
      layer_norm(x, graph.parameter("gain", {{96}, DType::f32}), graph.parameter("bias", {{96}, DType::f32}));
  const Wire y = activate(attention_packed(normed, {.heads = 2, .mask = Mask::causal}, {}), Activation::gelu);
  const Wire loss = mean_all(square(y));
  const Wire wrt[] = {x, graph.find("gain")};
  const Wires gradients = differentiate(loss, wrt);
  graph.output("dx", gradients[0]);
  graph.output("dgain", gradients[1]);
  const auto plan = compile(graph, cpu_backend());
  for (const int members : {1, 2, 3, 5}) {
    for (const int threads : {1, 2, 4}) {
      const auto session = make_session(plan, {.members = members, .threads = threads});
      EXPECT_EQ(allocations_of_a_run(*session, Watching::no), 0) << members << " members, " << threads << " threads";
    }
  }
}

TEST(Allocations, ATrainingStepTakesOnlyWhatProductsTake) {
  const ModelConfig config{.layers = 4, .width = 32, .heads = 2, .vocabulary = 50, .batch = 4, .time = 16};
  const TrainingStep step = build_training_step(config);
  const std::int64_t products = products_of(*step.plan);
  for (const int members : {1, 3}) {
    const auto session = make_session(step.plan, {.members = members, .threads = 2});
    for (const Watching watching : {Watching::no, Watching::yes}) {
      const std::int64_t taken = allocations_of_a_run(*session, watching);
      EXPECT_LE(taken, allocations_of_a_product() * products * members);
      RecordProperty("allocations", static_cast<int>(taken));
      RecordProperty("products", static_cast<int>(products * members));
    }
  }
}

}  // namespace
}  // namespace norma
