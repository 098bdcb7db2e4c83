// All optimisers in one pass over p, g and their states.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/optimiser.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the helpers need.
#include "core/simd-inl.h"
#include "ops/optimiser_kernel.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

// Returns the sum of squares of what p changes by.
template <OptimiserKind kind, typename T>
HWY_INLINE T update(const OptimiserTile<T>& tile) {
  const OptimiserRates<T>& r = tile.rates;
  T* const HWY_RESTRICT p = tile.p;
  const T* const HWY_RESTRICT g = tile.g;
  T* const HWY_RESTRICT m = tile.m;
  T* const HWY_RESTRICT v = tile.v;
  return sum_over<T>(tile.n, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto set = [&](T value) HWY_ATTR { return hn::Set(d, value); };
    const auto old = hn::LoadU(d, p + i);
    const auto grad = hn::MulAdd(set(r.l2), old, hn::Mul(hn::LoadU(d, g + i), set(r.scale)));
    auto step = grad;
    if constexpr (kind == OptimiserKind::sgd) {
      step = hn::MulAdd(set(r.beta1), hn::LoadU(d, m + i), grad);
      hn::StoreU(step, d, m + i);
      step = hn::Mul(set(r.lr), step);
    } else if constexpr (kind == OptimiserKind::adagrad) {
      const auto sum = hn::MulAdd(grad, grad, hn::LoadU(d, v + i));
      hn::StoreU(sum, d, v + i);
      step = hn::Div(hn::Mul(set(r.lr), grad), hn::Add(hn::Sqrt(sum), set(r.eps)));
    } else {
      const auto first = hn::MulAdd(set(r.beta1), hn::LoadU(d, m + i), hn::Mul(set(T{1} - r.beta1), grad));
      const auto second =
          hn::MulAdd(set(r.beta2), hn::LoadU(d, v + i), hn::Mul(set(T{1} - r.beta2), hn::Mul(grad, grad)));
      hn::StoreU(first, d, m + i);
      hn::StoreU(second, d, v + i);
      step = hn::Mul(set(r.lr / r.correction1), first);
      if constexpr (kind == OptimiserKind::adam) {
        step = hn::Div(step, hn::Add(hn::Div(hn::Sqrt(second), set(r.root_correction2)), set(r.eps)));
      } else if (r.rectify > T{0}) {
        step = hn::Div(hn::Mul(step, set(r.rectify * r.root_correction2)), hn::Add(hn::Sqrt(second), set(r.eps)));
      }
    }
    const auto change = hn::MulAdd(set(r.shrink), old, step);
    hn::StoreU(hn::Sub(old, change), d, p + i);
    return hn::Mul(change, change);
  });
}

template <typename T>
HWY_INLINE T update_any(OptimiserKind kind, const OptimiserTile<T>& tile) {
  switch (kind) {
    case OptimiserKind::adam: return update<OptimiserKind::adam>(tile);
    case OptimiserKind::radam: return update<OptimiserKind::radam>(tile);
    case OptimiserKind::sgd: return update<OptimiserKind::sgd>(tile);
    case OptimiserKind::adagrad: return update<OptimiserKind::adagrad>(tile);
  }
  return 0;
}

float update_f32(OptimiserKind kind, const OptimiserTile<float>& tile) { return update_any(kind, tile); }
double update_f64(OptimiserKind kind, const OptimiserTile<double>& tile) { return update_any(kind, tile); }

template <typename T>
HWY_INLINE void unit_rows(T* p, std::int64_t rows, std::int64_t width) {
  for (std::int64_t row = 0; row < rows; ++row, p += width) {
    const T squares = sum_over<T>(width, [&](auto d, std::int64_t i) HWY_ATTR {
      const auto x = hn::LoadU(d, p + i);
      return hn::Mul(x, x);
    });
    const T factor = T{1} / std::sqrt(squares);
    for_lanes<T>(width, [&](auto d, std::int64_t i)
                            HWY_ATTR { hn::StoreU(hn::Mul(hn::LoadU(d, p + i), hn::Set(d, factor)), d, p + i); });
  }
}

// Columns of a block that starts at p: `stride` apart from row to row.
template <typename T>
HWY_INLINE void unit_columns(T* p, std::int64_t rows, std::int64_t stride, std::int64_t columns) {
  for_lanes<T>(columns, [&](auto d, std::int64_t i) HWY_ATTR {
    auto squares = hn::Zero(d);
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto x = hn::LoadU(d, p + row * stride + i);
      squares = hn::MulAdd(x, x, squares);
    }
    const auto length = hn::Sqrt(squares);
    for (std::int64_t row = 0; row < rows; ++row) {
      hn::StoreU(hn::Div(hn::LoadU(d, p + row * stride + i), length), d, p + row * stride + i);
    }
  });
}

void unit_rows_f32(float* p, std::int64_t rows, std::int64_t width) { unit_rows(p, rows, width); }
void unit_rows_f64(double* p, std::int64_t rows, std::int64_t width) { unit_rows(p, rows, width); }
void unit_columns_f32(float* p, std::int64_t rows, std::int64_t stride, std::int64_t columns) {
  unit_columns(p, rows, stride, columns);
}
void unit_columns_f64(double* p, std::int64_t rows, std::int64_t stride, std::int64_t columns) {
  unit_columns(p, rows, stride, columns);
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cmath>

#include "norma/core/error.h"
#include "norma/device/cpu/kernel.h"
#include "norma/graph/graph.h"
#include "ops/check.h"

namespace norma {

HWY_EXPORT(update_f32);
HWY_EXPORT(update_f64);
HWY_EXPORT(unit_rows_f32);
HWY_EXPORT(unit_rows_f64);
HWY_EXPORT(unit_columns_f32);
HWY_EXPORT(unit_columns_f64);

namespace {

Tiling tiles_of(const Type& parameter) { return Tiling(parameter.shape.elements(), 4096, 64); }

// Where the inputs are: p, g, then the states, then control and scale.
constexpr int kFirstState = 2;

template <typename T>
bool applies(const T* control, T scale) {
  return control[OptimiserControl::active] != T{0} && std::isfinite(scale);
}

template <typename T>
OptimiserRates<T> rates_of(const T* control, T scale, const OptimiserGroup& group) {
  using C = OptimiserControl;
  return {.lr = control[C::lr] * static_cast<T>(group.lr),
          .shrink = control[C::shrink] * static_cast<T>(group.shrink),
          .l2 = control[C::l2] * static_cast<T>(group.l2),
          .beta1 = control[C::beta1],
          .beta2 = control[C::beta2],
          .eps = control[C::eps] * static_cast<T>(group.eps),
          .correction1 = control[C::correction1],
          .root_correction2 = std::sqrt(control[C::correction2]),
          .rectify = control[C::rectify],
          .scale = scale};
}

template <typename T>
Phase unit_phase(UnitVectors unit, const Shape& shape, int states, auto* rows_kernel, auto* columns_kernel) {
  const std::int64_t width = shape.channels(), rows = shape.elements() / width;
  const bool by_rows = unit == UnitVectors::rows;
  const Tiling tiling(by_rows ? rows : width, by_rows ? 16 : 64, by_rows ? 1 : 16);
  return {tiling.tiles, [=](const Call& call, std::int64_t tile) {
            if (!applies(call.in<T>(kFirstState + states), *call.in<T>(kFirstState + states + 1))) return;
            const std::int64_t at = tiling.begin(tile), count = tiling.end(tile) - at;
            if (by_rows) {
              rows_kernel(call.out<T>(0) + at * width, count, width);
            } else {
              columns_kernel(call.out<T>(0) + at, rows, width, count);
            }
          }};
}

}  // namespace

std::string_view name_of(OptimiserKind kind) {
  switch (kind) {
    case OptimiserKind::adam: return "adam";
    case OptimiserKind::radam: return "radam";
    case OptimiserKind::sgd: return "sgd";
    case OptimiserKind::adagrad: return "adagrad";
  }
  return "?";
}

int Optimiser::states() const { return kind_ == OptimiserKind::adam || kind_ == OptimiserKind::radam ? 2 : 1; }

std::string Optimiser::attributes() const {
  constexpr std::string_view units[] = {"", " unit rows", " unit columns"};
  return fmt::format("lr*{} eps*{} shrink*{} l2*{}{}", group_.lr, group_.eps, group_.shrink, group_.l2,
                     units[static_cast<std::size_t>(group_.unit)]);
}

std::vector<Type> Optimiser::infer(std::span<const Type> in) const {
  check_count(in.size(), static_cast<std::size_t>(states() + 4));
  check_computes(in[0]);
  check_type("the gradient", in[1], in[0]);
  for (int state = 0; state < states(); ++state)
    check_type("a state", in[static_cast<std::size_t>(kFirstState + state)], in[0]);
  const auto control = static_cast<std::size_t>(kFirstState + states());
  check_type("the control block", in[control], {{OptimiserControl::size}, in[0].dtype});
  check_type("the gradient scale", in[control + 1], {{1}, in[0].dtype});
  std::vector<Type> out(static_cast<std::size_t>(states() + 1), in[0]);
  out.push_back({{tiles_of(in[0]).tiles}, in[0].dtype});
  return out;
}

std::vector<Op::Update> Optimiser::updates() const {
  std::vector<Update> all = {{0, 0}};
  for (int state = 0; state < states(); ++state) all.push_back({1 + state, kFirstState + state});
  return all;
}

Cost Optimiser::cost(std::span<const Type> in, std::span<const Type> out) const {
  return {.flops = 16.0 * static_cast<double>(in[0].shape.elements()), .bytes = traffic(in, out)};
}

CpuKernel cpu_kernel(const Optimiser& op, Types in, Types) {
  const Tiling tiling = tiles_of(in[0]);
  const auto kernel = [&]<typename T>(auto* run, auto* rows_kernel, auto* columns_kernel) -> CpuKernel {
    CpuKernel made;
    made.phases.push_back({tiling.tiles, [=, kind = op.kind(), group = op.group(), count = op.states()](
                                             const Call& call, std::int64_t tile) {
                             const T* control = call.in<T>(kFirstState + count);
                             const T scale = *call.in<T>(kFirstState + count + 1);
                             T* const squares = call.out<T>(1 + count);
                             if (!applies(control, scale)) {
                               if (squares != nullptr) squares[tile] = 0;
                               return;
                             }
                             const std::int64_t at = tiling.begin(tile);
                             T* const first = call.out<T>(1) + at;
                             const T sum = run(kind, {.p = call.out<T>(0) + at,
                                                      .g = call.in<T>(1) + at,
                                                      .m = first,
                                                      .v = count == 2 ? call.out<T>(2) + at : first,
                                                      .n = tiling.end(tile) - at,
                                                      .rates = rates_of(control, scale, group)});
                             if (squares != nullptr) squares[tile] = sum;
                           }});
    if (op.group().unit != UnitVectors::none)
      made.phases.push_back(unit_phase<T>(op.group().unit, in[0].shape, op.states(), rows_kernel, columns_kernel));
    return made;
  };
  return in[0].dtype == DType::f32
             ? kernel.operator()<float>(NORMA_SIMD(update_f32), NORMA_SIMD(unit_rows_f32), NORMA_SIMD(unit_columns_f32))
             : kernel.operator()<double>(NORMA_SIMD(update_f64), NORMA_SIMD(unit_rows_f64),
                                         NORMA_SIMD(unit_columns_f64));
}

Wire optimise(OptimiserKind kind, Wire parameter, Wire gradient, Wire control, Wire scale, OptimiserGroup group) {
  Graph& graph = parameter.graph();
  const auto op = std::make_shared<Optimiser>(kind, group);
  Wires in = {parameter, gradient};
  {
    const auto root = graph.scope_at("");
    const auto add_state = [&](const char* suffix) {
      in.push_back(graph.state(parameter.name() + suffix, parameter.type()));
    };
    if (kind != OptimiserKind::adagrad) add_state("/m");
    if (kind != OptimiserKind::sgd) add_state("/v");
  }
  in.push_back(control);
  in.push_back(scale);
  return graph.apply(op, in).back();
}

}  // namespace norma
#endif  // HWY_ONCE
