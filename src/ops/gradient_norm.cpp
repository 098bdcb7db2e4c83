// Sums of squares over many gradients in one op, over fixed blocks combined in order.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/gradient_norm.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the helpers need.
#include "core/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

template <typename T>
HWY_INLINE T squares_typed(const T* x, std::int64_t n) {
  return sum_over<T>(n, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto v = hn::LoadU(d, x + i);
    return hn::Mul(v, v);
  });
}

float squares_f32(const float* x, std::int64_t n) { return squares_typed(x, n); }
double squares_f64(const double* x, std::int64_t n) { return squares_typed(x, n); }

template <typename T>
HWY_INLINE void add_typed(T* sum, const T* x, std::int64_t n) {
  for_lanes<T>(n, [&](auto d, std::int64_t i)
                      HWY_ATTR { hn::StoreU(hn::Add(hn::LoadU(d, sum + i), hn::LoadU(d, x + i)), d, sum + i); });
}

void add_f32(float* sum, const float* x, std::int64_t n) { add_typed(sum, x, n); }
void add_f64(double* sum, const double* x, std::int64_t n) { add_typed(sum, x, n); }

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <cmath>

#include "norma/device/cpu/kernel.h"
#include "norma/graph/graph.h"
#include "norma/ops/gradient_norm.h"
#include "ops/check.h"

namespace norma {

HWY_EXPORT(squares_f32);
HWY_EXPORT(squares_f64);
HWY_EXPORT(add_f32);
HWY_EXPORT(add_f64);

namespace {

constexpr int kHandful = 12;              // gradients, after which the total is rounded
constexpr std::int64_t kBlock = 16384;    // elements summed in one go, or more where there would be too many blocks
constexpr std::int64_t kMostBlocks = 64;  // of one gradient

struct Block {
  int input;
  std::int64_t begin, count;
};

}  // namespace

std::vector<Type> SquaredSums::infer(std::span<const Type> in) const {
  if (in.empty()) fail("needs at least one gradient");
  for (const Type& type : in) {
    check_computes(type);
    check_same_dtype(type, in[0]);
  }
  return {{{static_cast<std::int64_t>(in.size())}, in[0].dtype}, {{1}, in[0].dtype}};
}

Cost SquaredSums::cost(std::span<const Type> in, std::span<const Type> out) const {
  return {.flops = 2 * traffic(in, {}) / static_cast<double>(size_of(in[0].dtype)), .bytes = traffic(in, out)};
}

CpuKernel cpu_kernel(const SquaredSums&, Types in, Types) {
  const int gradients = static_cast<int>(in.size());
  std::vector<Block> blocks;
  std::vector<std::size_t> first;  // block of each gradient, and the end
  for (int input = 0; input < gradients; ++input) {
    first.push_back(blocks.size());
    const std::int64_t total = in[static_cast<std::size_t>(input)].shape.elements();
    const std::int64_t size = std::max(kBlock, (total + kMostBlocks - 1) / kMostBlocks);
    for (std::int64_t begin = 0; begin < total; begin += size)
      blocks.push_back({input, begin, std::min(size, total - begin)});
  }
  first.push_back(blocks.size());
  const auto count = static_cast<std::int64_t>(blocks.size());
  const auto make = [&]<typename T>(auto* run) -> CpuKernel {
    CpuKernel kernel;
    kernel.scratch_bytes = count * static_cast<std::int64_t>(sizeof(T));
    kernel.phases.push_back({count, [=](const Call& call, std::int64_t tile) {
                               const Block& block = blocks[static_cast<std::size_t>(tile)];
                               call.shared<T>()[tile] = run(call.in<T>(block.input) + block.begin, block.count);
                             }});
    // From the last handful of gradients to the first: the order in which the backward pass makes them.
    kernel.phases.push_back({1, [=](const Call& call, std::int64_t) {
                               T* squares = call.out<T>(0);
                               T total = 0;
                               for (int end = gradients; end > 0; end -= kHandful) {
                                 double handful = static_cast<double>(total);
                                 for (int input = std::max(0, end - kHandful); input < end; ++input) {
                                   const auto at = static_cast<std::size_t>(input);
                                   double sum = 0;
                                   for (std::size_t block = first[at]; block < first[at + 1]; ++block)
                                     sum += static_cast<double>(call.shared<T>()[block]);
                                   squares[input] = static_cast<T>(sum);
                                   handful += sum;
                                 }
                                 total = static_cast<T>(handful);
                               }
                               *call.out<T>(1) = total;
                             }});
    return kernel;
  };
  return in[0].dtype == DType::f32 ? make.operator()<float>(NORMA_SIMD(squares_f32))
                                   : make.operator()<double>(NORMA_SIMD(squares_f64));
}

std::vector<Type> ClipScale::infer(std::span<const Type> in) const {
  check_count(in.size(), 2);
  check_computes(in[0]);
  check_type("the sum of squares", in[0], {{1}, in[0].dtype});
  check_type("the bound", in[1], in[0]);
  return {in[0], in[0]};
}

CpuKernel cpu_kernel(const ClipScale&, Types in, Types) {
  const auto make = []<typename T>(T) -> CpuKernel {
    return {.phases = {{1, [](const Call& call, std::int64_t) {
                          const T norm = std::sqrt(*call.in<T>(0)), bound = *call.in<T>(1);
                          *call.out<T>(0) = norm;
                          if (!std::isfinite(norm)) {
                            *call.out<T>(1) = norm;
                          } else {
                            *call.out<T>(1) = bound > 0 && norm > bound ? bound / norm : T{1};
                          }
                        }}}};
  };
  return in[0].dtype == DType::f32 ? make(0.0f) : make(0.0);
}

std::vector<Type> Accumulate::infer(std::span<const Type> in) const {
  check_count(in.size(), 3);
  check_computes(in[0]);
  check_type("the gradient", in[1], in[0]);
  check_type("the flag", in[2], {{1}, in[0].dtype});
  return {in[0]};
}

CpuKernel cpu_kernel(const Accumulate&, Types in, Types) {
  const Tiling tiling(in[0].shape.elements(), 8192, 64);
  const auto make = [&]<typename T>(auto* add) -> CpuKernel {
    return {.phases = {{tiling.tiles, [=](const Call& call, std::int64_t tile) {
                          const std::int64_t at = tiling.begin(tile), n = tiling.end(tile) - at;
                          const T* gradient = call.in<T>(1) + at;
                          if (*call.in<T>(2) != T{0}) {
                            std::copy_n(gradient, n, call.out<T>(0) + at);
                          } else {
                            add(call.out<T>(0) + at, gradient, n);
                          }
                        }}}};
  };
  return in[0].dtype == DType::f32 ? make.operator()<float>(NORMA_SIMD(add_f32))
                                   : make.operator()<double>(NORMA_SIMD(add_f64));
}

GradientNorm gradient_norm(std::span<const Wire> gradients, Wire clip) {
  NORMA_ASSERT(!gradients.empty());
  Graph& graph = gradients[0].graph();
  const Wires sums = graph.apply(std::make_shared<SquaredSums>(), gradients);
  const Wire in[] = {sums[1], clip};
  const Wires out = graph.apply(std::make_shared<ClipScale>(), in);
  return {.squares = sums[0], .norm = out[0], .scale = out[1]};
}

Wire accumulate_gradient(Wire gradient, Wire first, std::string_view name) {
  Graph& graph = gradient.graph();
  const auto root = graph.scope_at("");
  const Wire in[] = {graph.state(std::string(name) + "/sum", gradient.type()), gradient, first};
  return graph.apply(std::make_shared<Accumulate>(), in)[0];
}

}  // namespace norma
#endif  // HWY_ONCE
