// The optimiser on a GPU, outside its kernels: which pieces of which parameters they take.
#include "norma/ops/optimiser.h"

#include <memory>

#include "ops/cuda/optimiser_call.h"
#include "ops/cuda/table.h"

namespace norma {
namespace {

constexpr std::int64_t kUnitPiece = 32;  // vectors of a block

// What follows from the op and its types; offsets are added when the table is made.
struct OptimiserPlan {
  OptimiserKind kind = OptimiserKind::adam;
  int states = 0, control = 0, scale = 0, squares = 0;
  std::vector<OptimiserParameter> parameters;
  std::vector<OptimiserPiece> pieces, units;

  OptimiserPlan(const Optimiser& op, Types in)
      : kind(op.kind()), states(op.states()), control(op.control()), scale(op.scale()), squares(op.squares()) {
    for (int p = 0; p < op.parameters(); ++p)
      add(op.groups()[static_cast<std::size_t>(p)], in[static_cast<std::size_t>(p)].shape);
  }

  void add(const OptimiserGroup& group, const Shape& shape) {
    const auto index = static_cast<std::int64_t>(parameters.size());
    const auto first = static_cast<std::int64_t>(pieces.size());
    const std::int64_t elements = shape.elements(), width = shape.channels(), rows = elements / width;
    for (std::int64_t begin = 0; begin < elements; begin += kOptimiserPiece) pieces.push_back({index, begin});
    const std::int64_t vectors = group.unit == UnitVectors::rows      ? rows
                                 : group.unit == UnitVectors::columns ? width
                                                                      : 0;
    for (std::int64_t begin = 0; begin < vectors; begin += kUnitPiece) units.push_back({index, begin});
    parameters.push_back({.p = 0,
                          .g = 0,
                          .m = 0,
                          .v = 0,
                          .lr = static_cast<float>(group.lr),
                          .eps = static_cast<float>(group.eps),
                          .shrink = static_cast<float>(group.shrink),
                          .l2 = static_cast<float>(group.l2),
                          .rows = rows,
                          .width = width,
                          .first = first,
                          .pieces = static_cast<std::int64_t>(pieces.size()) - first,
                          .wide = 0,
                          .unit = static_cast<std::int32_t>(group.unit)});
  }

  std::size_t pieces_at() const { return cuda::next_in_table<OptimiserParameter>(0, parameters.size()); }
  std::size_t units_at() const { return cuda::next_in_table<OptimiserPiece>(pieces_at(), pieces.size()); }

  // Parameters and states are updated where they are.
  std::vector<std::byte> table(const cuda::Call& call) const {
    std::vector<OptimiserParameter> placed = parameters;
    const int count = static_cast<int>(placed.size());
    for (int p = 0; p < count; ++p) {
      OptimiserParameter& of = placed[static_cast<std::size_t>(p)];
      of.p = call.out(p);
      of.g = call.in(count + p);
      of.m = call.out(count + p);
      of.v = call.out(states * count + p);
      of.wide = (of.p | of.g | of.m | of.v) % 16 == 0 ? 1 : 0;
    }
    std::vector<std::byte> bytes;
    cuda::append_to_table(bytes, placed);
    cuda::append_to_table(bytes, pieces);
    cuda::append_to_table(bytes, units);
    return bytes;
  }
};

int run_optimiser(const OptimiserPlan& plan, const cuda::Call& call) {
  const std::int64_t squares = call.out(plan.squares);
  const OptimiserCall told{.members = call.members,
                           .parameters = reinterpret_cast<const OptimiserParameter*>(call.table),
                           .pieces = reinterpret_cast<const OptimiserPiece*>(call.table + plan.pieces_at()),
                           .units = reinterpret_cast<const OptimiserPiece*>(call.table + plan.units_at()),
                           .control = call.in(plan.control),
                           .scale = call.in(plan.scale),
                           .sums = squares < 0 ? cuda::kAbsent : call.scratch,
                           .squares = squares};
  int error = launch_update(plan.kind, told, static_cast<std::int64_t>(plan.pieces.size()), call.stream);
  if (error == 0 && !plan.units.empty()) {
    error = launch_units(told, static_cast<std::int64_t>(plan.units.size()), call.stream);
  }
  if (error == 0 && squares >= 0) {
    error = launch_squares(told, static_cast<std::int64_t>(plan.parameters.size()), call.stream);
  }
  return error;
}

}  // namespace

cuda::Program cuda_kernel(const Optimiser& op, Types in, Types) {
  const auto plan = std::make_shared<const OptimiserPlan>(op, in);
  return {.launch = [plan](const cuda::Call& call) { return run_optimiser(*plan, call); },
          .scratch_bytes = static_cast<std::int64_t>(plan->pieces.size() * sizeof(double)),
          .table = [plan](const cuda::Call& call) { return plan->table(call); }};
}

}  // namespace norma
