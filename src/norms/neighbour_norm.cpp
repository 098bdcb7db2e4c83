#include "norma/norms/neighbour_norm.h"

#include <algorithm>
#include <array>

#include "norms/row.h"
#include "ops/check.h"

namespace norma {
namespace {

// {stream, what is added, eps, gain, bias} from the inputs behind the sum's.
template <typename T>
std::vector<T> norm_inputs(std::span<const T> behind, const T& added) {
  std::vector<T> in = {behind[0], added};
  in.insert(in.end(), behind.begin() + 1, behind.end());
  return in;
}

}  // namespace

int NeighbourNorm::added() const { return centres(norm_->definition()) ? 4 : 3; }

std::string NeighbourNorm::attributes() const {
  return fmt::format("{} {} {}", sum_->attributes(), norm_->definition().name, norm_->attributes());
}

std::vector<Type> NeighbourNorm::infer(std::span<const Type> in) const {
  const auto summed = static_cast<std::size_t>(stream());
  if (in.size() <= summed) check_count(in.size(), summed + 1);
  const Type added = sum_->infer(in.first(summed))[0];
  std::vector<Type> out = norm_->infer(norm_inputs(in.subspan(summed), added));
  out.push_back(added);
  return out;
}

Wires NeighbourNorm::reference(std::span<const Wire> in) const {
  const auto summed = static_cast<std::size_t>(stream());
  const Wire added = sum_->reference(in.first(summed))[0];
  Wires out = norm_->reference(norm_inputs(in.subspan(summed), added));
  out.push_back(added);
  return out;
}

Cost NeighbourNorm::cost(std::span<const Type> in, std::span<const Type> out) const {
  const auto summed = static_cast<std::size_t>(stream());
  Cost cost = sum_->cost(in.first(summed), out.last(1));
  cost.flops += norm_->cost(norm_inputs(in.subspan(summed), out.back()), out.first(out.size() - 1)).flops;
  cost.bytes = traffic(in, out.first(out.size() - 1));
  return cost;
}

// The rows that are added up and the stream are as they come; y is narrow where it is read so, or the stream is.
void NeighbourNorm::choose(Widths& widths) const {
  const auto at = static_cast<std::size_t>(stream());
  const bool x = widths.in[0], wide = !widths.in[at], y = widths.out[0];
  widths.all(false);
  widths.in[0] = x;
  widths.in[at] = !wide;
  widths.out[0] = y || !wide;
  widths.out[widths.out.size() - 2] = !wide;
  widths.out.back() = x;
}

namespace {

// Lanes of a warp share a row: 32, 64 or 128 channels.
bool has_lanes(const Shape& shape) {
  const std::int64_t width = shape.channels();
  return shape.elements() == shape[0] * width && (width == 32 || width == 64 || width == 128);
}

bool neighbour_norm(Rewriter& rewriter, int index) {
  const RowNorm* const norm = rewriter.as<RowNorm>(index);
  if (norm == nullptr || norm->terms() != 2 || norm->scaled() != 0 || norm->twin() || norm->options().fraction != 1)
    return false;
  if (norm->definition().gain != GainExtent::channels) return false;
  const std::vector<int> in = rewriter.node(index).inputs;
  for (const std::size_t term : {1, 0}) {
    const int added = in[term], at = rewriter.producer(added);
    const NeighbourAffine* const sum = rewriter.as<NeighbourAffine>(at);
    if (sum == nullptr || sum->activation() != Activation::none || in[0] == in[1]) continue;
    if (!has_lanes(rewriter.graph().value(added).type.shape)) continue;
    std::vector<int> behind = in;
    behind.erase(behind.begin() + static_cast<std::ptrdiff_t>(term));
    if (!rewriter.available_before(behind, at)) continue;
    std::vector<int> inputs = rewriter.node(at).inputs, outputs = rewriter.node(index).outputs;
    inputs.insert(inputs.end(), behind.begin(), behind.end());
    outputs.push_back(added);
    auto fused = std::make_shared<NeighbourNorm>(
        std::make_shared<NeighbourAffine>(sum->has_left(), sum->has_right(), Activation::none),
        std::make_shared<RowNorm>(norm->definition(), norm->options(), 2));
    rewriter.replace(at, std::array{index}, std::move(fused), inputs, outputs);
    return true;
  }
  return false;
}

}  // namespace

std::vector<Rewrite> neighbour_norm_fusions() { return {{"neighbour_norm", neighbour_norm}}; }

}  // namespace norma
