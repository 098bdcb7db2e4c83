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
#include <algorithm>
#include <cmath>
#include <memory>

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

// A piece of one parameter: `count` elements, rows or columns from `begin` on.
struct Piece {
  int parameter;
  std::int64_t begin, count;
};

void add_pieces(std::vector<Piece>& pieces, int parameter, const Tiling& tiling) {
  for (std::int64_t tile = 0; tile < tiling.tiles; ++tile)
    pieces.push_back({parameter, tiling.begin(tile), tiling.end(tile) - tiling.begin(tile)});
}

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
Phase update_phase(const std::shared_ptr<const Optimiser>& op, std::vector<Piece> pieces, auto* run) {
  const auto count = static_cast<std::int64_t>(pieces.size());
  return {count, [op, run, pieces = std::move(pieces)](const Call& call, std::int64_t tile) {
            const Piece& piece = pieces[static_cast<std::size_t>(tile)];
            const int p = piece.parameter;
            const T* control = call.in<T>(op->control());
            const T scale = *call.in<T>(op->scale());
            T& squares = call.shared<T>()[tile];
            squares = 0;
            if (!applies(control, scale)) return;
            T* const first = call.out<T>(op->state_out(0, p)) + piece.begin;
            squares = run(op->kind(), {.p = call.out<T>(p) + piece.begin,
                                       .g = call.in<T>(op->gradient(p)) + piece.begin,
                                       .m = first,
                                       .v = op->states() == 2 ? call.out<T>(op->state_out(1, p)) + piece.begin : first,
                                       .n = piece.count,
                                       .rates = rates_of(control, scale, op->groups()[static_cast<std::size_t>(p)])});
          }};
}

// Brings vectors back to unit length, in the parameters whose group asks for it.
template <typename T>
Phase unit_phase(const std::shared_ptr<const Optimiser>& op, Types in, auto* rows_kernel, auto* columns_kernel) {
  std::vector<Piece> pieces;
  for (int p = 0; p < op->parameters(); ++p) {
    const UnitVectors unit = op->groups()[static_cast<std::size_t>(p)].unit;
    const Shape& shape = in[static_cast<std::size_t>(p)].shape;
    const std::int64_t width = shape.channels();
    if (unit == UnitVectors::rows) add_pieces(pieces, p, Tiling(shape.elements() / width, 16, 1));
    if (unit == UnitVectors::columns) add_pieces(pieces, p, Tiling(width, 64, 16));
  }
  std::vector<Shape> shapes;
  for (int p = 0; p < op->parameters(); ++p) shapes.push_back(in[static_cast<std::size_t>(p)].shape);
  const auto count = static_cast<std::int64_t>(pieces.size());
  return {count, [=](const Call& call, std::int64_t tile) {
            if (!applies(call.in<T>(op->control()), *call.in<T>(op->scale()))) return;
            const auto [p, begin, vectors] = pieces[static_cast<std::size_t>(tile)];
            const std::int64_t width = shapes[static_cast<std::size_t>(p)].channels();
            if (op->groups()[static_cast<std::size_t>(p)].unit == UnitVectors::rows) {
              rows_kernel(call.out<T>(p) + begin * width, vectors, width);
            } else {
              columns_kernel(call.out<T>(p) + begin, shapes[static_cast<std::size_t>(p)].elements() / width, width,
                             vectors);
            }
          }};
}

// Adds up the squares of the pieces of each parameter, in order.
template <typename T>
Phase total_phase(const std::shared_ptr<const Optimiser>& op, std::vector<Piece> pieces) {
  return {1, [op, pieces = std::move(pieces)](const Call& call, std::int64_t) {
            double* const squares = call.out<double>(op->squares());
            if (squares == nullptr) return;
            std::fill_n(squares, op->parameters(), 0.0);
            for (std::size_t i = 0; i < pieces.size(); ++i)
              squares[pieces[i].parameter] += static_cast<double>(call.shared<T>()[i]);
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

std::string Optimiser::attributes() const { return fmt::format("parameters={}", parameters()); }

std::vector<Type> Optimiser::infer(std::span<const Type> in) const {
  if (groups_.empty()) fail("needs at least one parameter");
  check_count(in.size(), static_cast<std::size_t>(scale()) + 1);
  check_computes(in[0]);
  std::vector<Type> out;
  for (int p = 0; p < parameters(); ++p) {
    const Type& type = in[static_cast<std::size_t>(p)];
    check_same_dtype(type, in[0]);
    check_type("the gradient", in[static_cast<std::size_t>(gradient(p))], type);
    for (int state = 0; state < states(); ++state)
      check_type("a state", in[static_cast<std::size_t>(state_in(state, p))], type);
  }
  check_type("the control block", in[static_cast<std::size_t>(control())], {{OptimiserControl::size}, in[0].dtype});
  check_type("the gradient scale", in[static_cast<std::size_t>(scale())], {{1}, in[0].dtype});
  for (int copy = 0; copy <= states(); ++copy) out.insert(out.end(), in.begin(), in.begin() + parameters());
  out.push_back({{parameters()}, DType::f64});
  return out;
}

std::vector<Op::Update> Optimiser::updates() const {
  std::vector<Update> all;
  for (int p = 0; p < parameters(); ++p) {
    all.push_back({p, p});
    for (int state = 0; state < states(); ++state) all.push_back({state_out(state, p), state_in(state, p)});
  }
  return all;
}

Cost Optimiser::cost(std::span<const Type> in, std::span<const Type> out) const {
  double elements = 0;
  for (const Type& type : in.first(groups_.size())) elements += static_cast<double>(type.shape.elements());
  return {.flops = 16.0 * elements, .bytes = traffic(in, out)};
}

CpuKernel cpu_kernel(const Optimiser& op, Types in, Types) {
  const auto shared = std::make_shared<const Optimiser>(op);  // the phases outlive the graph
  std::vector<Piece> pieces;
  for (int p = 0; p < op.parameters(); ++p)
    add_pieces(pieces, p, Tiling(in[static_cast<std::size_t>(p)].shape.elements(), 4096, 64));
  const auto kernel = [&]<typename T>(auto* run, auto* rows_kernel, auto* columns_kernel) -> CpuKernel {
    CpuKernel made;
    made.scratch_bytes = static_cast<std::int64_t>(pieces.size() * sizeof(T));
    made.phases.push_back(update_phase<T>(shared, pieces, run));
    if (Phase units = unit_phase<T>(shared, in, rows_kernel, columns_kernel); units.tiles > 0)
      made.phases.push_back(std::move(units));
    made.phases.push_back(total_phase<T>(shared, pieces));
    return made;
  };
  return in[0].dtype == DType::f32
             ? kernel.operator()<float>(NORMA_SIMD(update_f32), NORMA_SIMD(unit_rows_f32), NORMA_SIMD(unit_columns_f32))
             : kernel.operator()<double>(NORMA_SIMD(update_f64), NORMA_SIMD(unit_rows_f64),
                                         NORMA_SIMD(unit_columns_f64));
}

Wire optimise(OptimiserKind kind, std::span<const Wire> parameters, std::span<const Wire> gradients, Wire control,
              Wire scale, std::vector<OptimiserGroup> groups) {
  NORMA_ASSERT(!parameters.empty() && parameters.size() == gradients.size() && parameters.size() == groups.size());
  Graph& graph = parameters[0].graph();
  Wires in(parameters.begin(), parameters.end());
  in.insert(in.end(), gradients.begin(), gradients.end());
  {
    const auto root = graph.scope_at("");
    const auto add_states = [&](const char* suffix) {
      for (const Wire& parameter : parameters) in.push_back(graph.state(parameter.name() + suffix, parameter.type()));
    };
    if (kind != OptimiserKind::adagrad) add_states("/m");
    if (kind != OptimiserKind::sgd) add_states("/v");
  }
  in.push_back(control);
  in.push_back(scale);
  return graph.apply(std::make_shared<Optimiser>(kind, std::move(groups)), in).back();
}

}  // namespace norma
#endif  // HWY_ONCE
