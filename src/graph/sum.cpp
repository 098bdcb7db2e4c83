// y = x1 + x2 + ...
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "graph/sum.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the helpers need.
#include "core/simd-inl.h"
#include "norma/graph/kernel.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

template <typename T>
void sum_range(const Call& call, std::int64_t begin, std::int64_t end) {
  T* out = call.out<T>(0);
  for_lanes<T>(end - begin, [&](auto d, std::int64_t i) HWY_ATTR {
    const std::int64_t at = begin + i;
    auto total = hn::LoadU(d, call.in<T>(0) + at);
    for (int k = 1; k < call.inputs; ++k) total = hn::Add(total, hn::LoadU(d, call.in<T>(k) + at));
    hn::StoreU(total, d, out + at);
  });
}

void sum_f32(const Call& call, std::int64_t begin, std::int64_t end) { sum_range<float>(call, begin, end); }
void sum_f64(const Call& call, std::int64_t begin, std::int64_t end) { sum_range<double>(call, begin, end); }

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "norma/core/error.h"
#include "norma/graph/graph.h"
#include "norma/graph/sum.h"

namespace norma {

HWY_EXPORT(sum_f32);
HWY_EXPORT(sum_f64);

std::vector<Type> Sum::infer(std::span<const Type> in) const {
  if (in.size() < 2) fail("needs at least two terms");
  for (const Type& type : in) {
    if (type != in[0]) fail("all terms must have one type, but {} and {} were given", in[0].str(), type.str());
  }
  if (in[0].dtype != DType::f32 && in[0].dtype != DType::f64) fail("adds f32 or f64, not {}", name_of(in[0].dtype));
  return {in[0]};
}

Wires Sum::vjp(const VjpContext& context) const { return Wires(context.in.size(), context.dout[0]); }

Cost Sum::cost(std::span<const Type> in, std::span<const Type> out) const {
  return {.flops = static_cast<double>(in.size() - 1) * static_cast<double>(out[0].shape.elements()),
          .bytes = traffic(in, out)};
}

CpuKernel Sum::cpu(std::span<const Type> in, std::span<const Type>) const {
  const Tiling tiling(in[0].shape.elements(), 16384, 64);
  const auto run = in[0].dtype == DType::f32 ? NORMA_SIMD(sum_f32) : NORMA_SIMD(sum_f64);
  return {.phases = {{tiling.tiles,
                      [=](const Call& call, std::int64_t tile) { run(call, tiling.begin(tile), tiling.end(tile)); }}}};
}

Wire sum(std::span<const Wire> terms) {
  if (terms.empty()) fail("sum: needs at least one term");
  if (terms.size() == 1) return terms[0];
  // Long sums become a left-to-right chain, so that no node has more arguments than a kernel call carries.
  constexpr std::size_t kMost = kMaxArguments - 1;
  static const auto op = std::make_shared<const Sum>();
  Graph& graph = terms[0].graph();
  Wire total = graph.apply(op, terms.first(std::min(terms.size(), kMost)))[0];
  for (std::size_t done = kMost; done < terms.size();) {
    Wires next = {total};
    for (; done < terms.size() && next.size() < kMost; ++done) next.push_back(terms[done]);
    total = graph.apply(op, next)[0];
  }
  return total;
}

}  // namespace norma
#endif  // HWY_ONCE
