#include "norma/ops/one_hot.h"

#include <algorithm>
#include <limits>

#include "norma/core/error.h"
#include "norma/device/cpu/kernel.h"
#include "norma/graph/graph.h"
#include "ops/check.h"

namespace norma {
namespace {

template <typename T>
CpuKernel one_hot_kernel(std::int64_t rows, std::int64_t classes, std::int32_t ignore) {
  const Tiling tiling(rows, std::max<std::int64_t>(1, 8192 / classes));
  return {.phases = {{tiling.tiles, [=](const Call& call, std::int64_t tile) {
                        for (std::int64_t row = tiling.begin(tile); row < tiling.end(tile); ++row) {
                          const std::int32_t target = call.in<std::int32_t>(0)[row];
                          const bool known = target == ignore || (target >= 0 && target < classes);
                          T* const hot = call.out<T>(0) + row * classes;
                          std::fill_n(hot, classes, known ? T{0} : std::numeric_limits<T>::quiet_NaN());
                          if (known && target != ignore) hot[target] = 1;
                        }
                      }}}};
}

}  // namespace

std::string OneHot::attributes() const { return fmt::format("classes={} ignore={}", classes_, ignore_); }

std::vector<Type> OneHot::infer(std::span<const Type> in) const {
  check_count(in.size(), 1);
  if (in[0].dtype != DType::i32) fail("takes indices in i32, but {} was given", in[0].str());
  std::vector<std::int64_t> sizes(in[0].shape.dims().begin(), in[0].shape.dims().end());
  sizes.push_back(classes_);
  const Type out{Shape(sizes), dtype_};
  check_computes(out);
  return {out};
}

Wires OneHot::vjp(const VjpContext&) const { return {Wire()}; }

Cost OneHot::cost(std::span<const Type> in, std::span<const Type> out) const { return {.bytes = traffic(in, out)}; }

CpuKernel cpu_kernel(const OneHot& op, Types in, Types) {
  const std::int64_t rows = in[0].shape.elements();
  return op.dtype() == DType::f32 ? one_hot_kernel<float>(rows, op.classes(), op.ignore())
                                  : one_hot_kernel<double>(rows, op.classes(), op.ignore());
}

Wire one_hot(Wire targets, std::int64_t classes, std::int32_t ignore, DType dtype) {
  const Wire in[] = {targets};
  return targets.graph().apply(std::make_shared<OneHot>(classes, ignore, dtype), in)[0];
}

}  // namespace norma
