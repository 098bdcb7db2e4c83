#include "norma/ops/upsample.h"

#include <algorithm>

#include "norma/core/error.h"
#include "norma/device/cpu/kernel.h"
#include "norma/graph/graph.h"
#include "norma/ops/reduce.h"
#include "norma/ops/views.h"
#include "ops/check.h"

namespace norma {
namespace {

// Of the small image: rows of all images, pixels of a row, numbers of a pixel.
struct UpsampleSizes {
  std::int64_t rows, columns, channels, factor;

  UpsampleSizes(const Shape& small, std::int64_t f)
      : rows(small[0] * small[1]), columns(small[2]), channels(small[3]), factor(f) {}
  std::int64_t small_row() const { return columns * channels; }
  std::int64_t large_row() const { return small_row() * factor; }
};

template <typename T>
CpuKernel repeat_kernel(const UpsampleSizes& s) {
  const Tiling rows(s.rows, std::max<std::int64_t>(1, 4096 / (s.large_row() * s.factor)));
  return {.phases = {{.tiles = rows.tiles, .run = [=](const Call& call, std::int64_t tile) {
                        for (std::int64_t row = rows.begin(tile); row < rows.end(tile); ++row) {
                          const T* from = call.in<T>(0) + row * s.small_row();
                          T* const first = call.out<T>(0) + row * s.factor * s.large_row();
                          for (std::int64_t pixel = 0; pixel < s.columns * s.factor; ++pixel)
                            std::copy_n(from + pixel / s.factor * s.channels, s.channels, first + pixel * s.channels);
                          for (std::int64_t k = 1; k < s.factor; ++k)
                            std::copy_n(first, s.large_row(), first + k * s.large_row());
                        }
                      }}}};
}

template <typename T>
CpuKernel gather_kernel(const UpsampleSizes& s) {
  const Tiling rows(s.rows, std::max<std::int64_t>(1, 4096 / (s.large_row() * s.factor)));
  return {.phases = {{.tiles = rows.tiles, .run = [=](const Call& call, std::int64_t tile) {
                        for (std::int64_t row = rows.begin(tile); row < rows.end(tile); ++row) {
                          const T* const from = call.in<T>(0) + row * s.factor * s.large_row();
                          T* const to = call.out<T>(0) + row * s.small_row();
                          std::fill_n(to, s.small_row(), T{0});
                          for (std::int64_t k = 0; k < s.factor; ++k) {
                            for (std::int64_t pixel = 0; pixel < s.columns * s.factor; ++pixel) {
                              const T* const x = from + k * s.large_row() + pixel * s.channels;
                              T* const y = to + pixel / s.factor * s.channels;
                              for (std::int64_t c = 0; c < s.channels; ++c) y[c] += x[c];
                            }
                          }
                        }
                      }}}};
}

}  // namespace

std::string Upsample::attributes() const { return fmt::format("factor={}", factor_); }

std::vector<Type> Upsample::infer(std::span<const Type> in) const {
  check_count(in.size(), 1);
  check_computes(in[0]);
  const Shape& x = in[0].shape;
  if (x.rank() != 4) fail("needs images [batch, height, width, channels], but is given {}", x.str());
  if (factor_ < 1 || factor_ > 64) fail("a factor of {}; expected 1 to 64", factor_);
  if (way_ == Way::repeat) return {{{x[0], x[1] * factor_, x[2] * factor_, x[3]}, in[0].dtype}};
  if (x[1] % factor_ != 0 || x[2] % factor_ != 0)
    fail("{} does not divide into squares of {} x {}", x.str(), factor_, factor_);
  return {{{x[0], x[1] / factor_, x[2] / factor_, x[3]}, in[0].dtype}};
}

Wires Upsample::vjp(const VjpContext& context) const {
  const Way other = way_ == Way::repeat ? Way::gather : Way::repeat;
  return context.graph().apply(std::make_shared<Upsample>(other, factor_), context.dout);
}

// Columns, then rows; each is an axis of its own meanwhile.
Wires Upsample::reference(std::span<const Wire> in) const {
  const Shape s = in[0].shape();
  const std::int64_t f = factor_;
  if (way_ == Way::repeat) {
    const std::int64_t pixels = s[0] * s[1] * s[2], wide = f * s[2] * s[3];
    const Wire columns = broadcast_to(reshape(in[0], {pixels, 1, s[3]}), {pixels, f, s[3]});
    const Wire rows = broadcast_to(reshape(columns, {s[0] * s[1], 1, wide}), {s[0] * s[1], f, wide});
    return {reshape(rows, {s[0], f * s[1], f * s[2], s[3]})};
  }
  const std::int64_t height = s[1] / f, width = s[2] / f, wide = s[2] * s[3];
  const Wire rows = sum_to(reshape(in[0], {s[0] * height, f, wide}), {s[0] * height, 1, wide});
  const std::int64_t pixels = s[0] * height * width;
  const Wire columns = sum_to(reshape(rows, {pixels, f, s[3]}), {pixels, 1, s[3]});
  return {reshape(columns, {s[0], height, width, s[3]})};
}

Cost Upsample::cost(std::span<const Type> in, std::span<const Type> out) const {
  return {.flops = way_ == Way::repeat ? 0 : static_cast<double>(in[0].shape.elements()), .bytes = traffic(in, out)};
}

CpuKernel cpu_kernel(const Upsample& op, Types in, Types out) {
  const bool repeat = op.way() == Upsample::Way::repeat;
  const UpsampleSizes sizes(repeat ? in[0].shape : out[0].shape, op.factor());
  if (repeat) return in[0].dtype == DType::f32 ? repeat_kernel<float>(sizes) : repeat_kernel<double>(sizes);
  return in[0].dtype == DType::f32 ? gather_kernel<float>(sizes) : gather_kernel<double>(sizes);
}

Wire upsample(Wire x, std::int64_t factor) {
  const Wire in[] = {x};
  return x.graph().apply(std::make_shared<Upsample>(Upsample::Way::repeat, factor), in)[0];
}

}  // namespace norma
