// Partial sums of dgain and dbias join the sums over rows of other tensors: a norm's backward pass is then one launch.
#include <algorithm>
#include <array>

#include "norma/norms/cuda_kernels.h"
#include "norma/norms/row.h"
#include "norma/ops/column_sums.h"
#include "norma/ops/reduce.h"
#include "norms/cuda/row_launch.h"
#include "norms/row.h"

namespace norma {
namespace {

// The nearest sums over rows behind a node that have room for so many tensors more; -1 = none.
int column_sums_behind(const Rewriter& rewriter, int index, std::size_t more) {
  constexpr int kFarthest = 96;  // nodes: some layers
  for (int next = index + 1; next < std::min(rewriter.size(), index + kFarthest); ++next) {
    if (rewriter.as<ColumnSums>(next) == nullptr) continue;
    if (rewriter.node(next).inputs.size() + more <= kMostColumnSums) return next;
  }
  return -1;
}

bool norm_lines(Rewriter& rewriter, int index) {
  const RowNormBackward* const norm = rewriter.as<RowNormBackward>(index);
  if (norm == nullptr || norm->lines() > 0 || norm->definition().gain != GainExtent::channels) return false;
  const Affine affine = norm->options().affine;
  const std::size_t sums = (has_gain(affine) ? 1 : 0) + (has_bias(affine) ? 1 : 0);
  if (sums == 0) return false;
  const Shape& x = rewriter.graph().value(rewriter.node(index).inputs[0]).type.shape;
  const int next = column_sums_behind(rewriter, index, sums);
  std::vector<int> outputs = rewriter.node(index).outputs;
  const std::vector<int> wanted(outputs.begin() + 1, outputs.begin() + 1 + static_cast<std::ptrdiff_t>(sums));
  if (next < 0 || !rewriter.unread_before(wanted, next, index)) return false;
  std::fill_n(outputs.begin() + 1, sums, -1);
  rewriter.replace(index, {}, norm->with_lines(cuda::enough_backward_lines(x.rows(), x.channels())),
                   rewriter.node(index).inputs, std::move(outputs));
  const std::vector<int>& made = rewriter.node(index).outputs;
  std::vector<int> inputs = rewriter.node(next).inputs, all = rewriter.node(next).outputs;
  inputs.insert(inputs.end(), made.begin() + 1, made.begin() + 1 + static_cast<std::ptrdiff_t>(sums));
  all.insert(all.end(), wanted.begin(), wanted.end());
  rewriter.replace(next, {}, std::make_shared<ColumnSums>(), std::move(inputs), std::move(all));
  return true;
}

// The sums over rows that read a value alone; -1 = none.
int sums_of(const Rewriter& rewriter, int value, int behind) {
  constexpr int kNear = 12;  // nodes
  for (int next = behind + 1; next < std::min(rewriter.size(), behind + kNear); ++next) {
    if (rewriter.as<SumTo>(next) == nullptr || rewriter.node(next).inputs[0] != value) continue;
    const Shape& from = rewriter.graph().value(value).type.shape;
    const Shape& to = rewriter.graph().value(rewriter.node(next).outputs[0]).type.shape;
    if (rewriter.node(next).backward && to == Shape{from.channels()}) return next;
  }
  return -1;
}

// A norm whose partial sums are added up elsewhere, and the sums over rows of the total that it makes -> partial sums
// of that too. Where the stream is narrow and as wide as the kernel has a form for: elsewhere it would be a pass more
// between two of the main chain.
bool total_lines(Rewriter& rewriter, int index) {
  const RowNormBackward* const norm = rewriter.as<RowNormBackward>(index);
  if (norm == nullptr || norm->lines() == 0 || norm->totals() == TotalSums::lines || norm->scaled() > 0 ||
      norm->residuals() > 1 || rewriter.graph().narrow_streams().empty())
    return false;
  std::vector<int> outputs = rewriter.node(index).outputs;
  const int sum = sums_of(rewriter, outputs[0], index);
  if (sum < 0 || !cuda::sums_dx(rewriter.graph().value(outputs[0]).type.shape.channels())) return false;
  for (int next = sum + 1; next < rewriter.size(); ++next) {
    if (rewriter.as<ColumnSums>(next) == nullptr) continue;
    std::vector<int> inputs = rewriter.node(next).inputs, all = rewriter.node(next).outputs;
    if (std::find(inputs.begin(), inputs.end(), outputs.back()) == inputs.end()) continue;
    const int result = rewriter.node(sum).outputs[0];
    if (inputs.size() + 1 > kMostColumnSums || !rewriter.unread_before({&result, 1}, next, sum)) return false;
    outputs.push_back(-1);
    rewriter.replace(index, {}, norm->with_lines(norm->lines(), TotalSums::lines), rewriter.node(index).inputs,
                     std::move(outputs));
    inputs.push_back(rewriter.node(index).outputs.back());
    all.push_back(result);
    rewriter.replace(next, std::array{sum}, std::make_shared<ColumnSums>(), std::move(inputs), std::move(all));
    return true;
  }
  return false;
}

// A norm whose partial sums are added up elsewhere, and gathered sums over rows that read its total -> partial sums of
// that in its place. Of short rows, where the kernel makes them for next to nothing.
bool gathered_total_lines(Rewriter& rewriter, int index) {
  constexpr int kFarthest = 96;  // nodes: some layers
  const RowNormBackward* const norm = rewriter.as<RowNormBackward>(index);
  if (norm == nullptr || norm->lines() == 0 || norm->totals() == TotalSums::lines || norm->scaled() > 0 ||
      norm->twin() || norm->residuals() > 1)
    return false;
  std::vector<int> outputs = rewriter.node(index).outputs;
  const int total = outputs[0];
  if (!cuda::sums_short_dx(rewriter.graph().value(total).type.shape.channels())) return false;
  for (int next = index + 1; next < std::min(rewriter.size(), index + kFarthest); ++next) {
    if (rewriter.as<ColumnSums>(next) == nullptr) continue;
    std::vector<int> inputs = rewriter.node(next).inputs;
    const auto found = std::find(inputs.begin(), inputs.end(), total);
    if (found == inputs.end()) continue;
    outputs.push_back(-1);
    rewriter.replace(index, {}, norm->with_lines(norm->lines(), TotalSums::lines), rewriter.node(index).inputs,
                     std::move(outputs));
    *found = rewriter.node(index).outputs.back();
    rewriter.replace(next, {}, std::make_shared<ColumnSums>(), std::move(inputs), rewriter.node(next).outputs);
    return true;
  }
  return false;
}

}  // namespace

std::vector<Rewrite> norm_total_fusions() { return {{"gathered_total_lines", gathered_total_lines}}; }

std::vector<Rewrite> norm_line_fusions() { return {{"norm_lines", norm_lines}, {"total_lines", total_lines}}; }

}  // namespace norma
