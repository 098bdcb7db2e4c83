// Functions of wires that take more than a line. Streams are [batch, time, d]; a stream of several copies is
// [batch, time, copies, d], weights over its copies are [copies] or [batch, time, copies], and mixers between them are
// [copies, copies] or [batch, time, copies, copies].
#include "schemes/wire_functions.h"

#include <cmath>

#include "norma/core/error.h"
#include "norma/graph/graph.h"
#include "norma/ops/activation.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/matmul.h"
#include "norma/ops/reduce.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

using Arguments = std::span<const Traced>;

Wire wire(Arguments a, std::size_t i) { return std::get<Wire>(a[i]); }

// A positive whole number that counts something.
std::int64_t count(Arguments a, std::size_t i) {
  const double value = std::get<double>(a[i]);
  constexpr double kMost = 4096;
  if (value < 1 || value > kMost || value != std::floor(value))
    fail("expected a whole number from 1 to {}, not {}", kMost, value);
  return static_cast<std::int64_t>(value);
}

// The leading `keep` axes of a shape, then others.
Shape with_tail(const Shape& shape, int keep, std::initializer_list<std::int64_t> tail) {
  std::vector<std::int64_t> dims;
  for (int axis = 0; axis < keep; ++axis) dims.push_back(shape[axis]);
  dims.insert(dims.end(), tail);
  return Shape(dims);
}

std::int64_t copies_of(Wire streams) {
  if (streams.shape().rank() != 4)
    fail("expected a stream of several copies [batch, time, copies, d], not {}", streams.shape().str());
  return streams.shape()[2];
}

// [rows, copies, d]: what batched products take.
Wire as_batch(Wire streams) {
  const Shape& s = streams.shape();
  return reshape(streams, {s[0] * s[1], s[2], s[3]});
}

// Weights or mixers, given once or for each token, as [rows, a, b].
Wire per_token(Wire weights, std::int64_t rows, std::int64_t a, std::int64_t b) {
  const std::int64_t elements = weights.shape().elements();
  if (elements == a * b) return broadcast_to(reshape(weights, {1, a, b}), {rows, a, b});
  if (elements == rows * a * b) return reshape(weights, {rows, a, b});
  fail("expected {} numbers, once or for each of {} tokens, not {}", a * b, rows, weights.shape().str());
}

}  // namespace

// sum_i w_i H_i. A product and a sum rather than a matrix product for each token, which would be too small for one.
Wire weigh_copies(Arguments a) {
  const Wire weights = wire(a, 0), streams = wire(a, 1);
  const std::int64_t copies = copies_of(streams), elements = weights.shape().elements();
  const Shape& s = streams.shape();
  const std::int64_t rows = s[0] * s[1];
  if (elements != copies && elements != rows * copies)
    fail("expected {} numbers, once or for each of {} tokens, not {}", copies, rows, weights.shape().str());
  const Wire factors = reshape(weights, elements == copies ? Shape{copies, 1} : Shape{rows, copies, 1});
  return reshape(sum_to(as_batch(streams) * factors, {rows, 1, s[3]}), {s[0], s[1], s[3]});
}

// row i of the result is sum_j A_ij H_j
Wire mix_copies(Arguments a) {
  const Wire mixer = wire(a, 0), streams = wire(a, 1);
  const std::int64_t copies = copies_of(streams);
  const Shape& s = streams.shape();
  return reshape(matmul(per_token(mixer, s[0] * s[1], copies, copies), as_batch(streams)), s);
}

// row i of the result is b_i y
Wire spread_copies(Arguments a) {
  const Wire weights = wire(a, 0), y = wire(a, 1);
  if (y.shape().rank() != 3) fail("expected a stream [batch, time, d], not {}", y.shape().str());
  const Shape& w = weights.shape();
  return reshape(weights, with_tail(w, w.rank(), {1})) * reshape(y, {y.shape()[0], y.shape()[1], 1, y.shape()[2]});
}

Wire copies_of_one(Arguments a) {
  const Wire x = wire(a, 0);
  const Shape& s = x.shape();
  if (s.rank() != 3) fail("expected a stream [batch, time, d], not {}", s.str());
  return broadcast_to(reshape(x, {s[0], s[1], 1, s[2]}), {s[0], s[1], count(a, 1), s[2]});
}

Wire sum_copies(Arguments a) {
  const Wire streams = wire(a, 0);
  copies_of(streams);
  const Shape& s = streams.shape();
  return reshape(sum_to(streams, {s[0], s[1], 1, s[3]}), {s[0], s[1], s[3]});
}

Wire append_copy(Arguments a) {
  const Wire streams = wire(a, 0), y = wire(a, 1);
  copies_of(streams);
  const Wire parts[] = {streams, reshape(y, {y.shape()[0], y.shape()[1], 1, y.shape()[2]})};
  return concat(parts, 2);
}

// [.., d] . [d] -> [..]
Wire dot_last(Arguments a) {
  const Wire x = wire(a, 0), w = wire(a, 1);
  const Wire product = matmul_rows(x, reshape(w, {w.shape().elements(), 1}));
  return reshape(product, with_tail(x.shape(), x.shape().rank() - 1, {}));
}

// The last two axes as one, and one axis of c*c numbers as a c by c matrix.
Wire flat_copies(Arguments a) {
  const Wire x = wire(a, 0);
  const Shape& s = x.shape();
  if (s.rank() < 2) fail("expected at least two axes, not {}", s.str());
  return reshape(x, with_tail(s, s.rank() - 2, {s[s.rank() - 2] * s[s.rank() - 1]}));
}
Wire as_matrix(Arguments a) {
  const Wire x = wire(a, 0);
  const Shape& s = x.shape();
  const auto side = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(s.channels()))));
  if (side * side != s.channels()) fail("{} numbers are no square matrix", s.channels());
  return reshape(x, with_tail(s, s.rank() - 1, {side, side}));
}

// exp(A), then columns and rows in turn divided by their sums: nearly doubly stochastic, rows exactly. Tokens are the
// last axis meanwhile, since kernels walk that one.
Wire sinkhorn_matrix(Arguments a) {
  const Wire raw = wire(a, 0);
  const Shape& s = raw.shape();
  const std::int64_t side = s.channels(), rows = s.elements() / (side * side);
  if (s.rank() < 2 || s[s.rank() - 2] != side) fail("expected square matrices, not {}", s.str());
  Wire m = exp(permute(reshape(raw, {rows, side, side}), {1, 2, 0}));
  for (std::int64_t i = 0; i < count(a, 1); ++i) {
    m = m / sum_to(m, {1, side, rows});
    m = m / sum_to(m, {side, 1, rows});
  }
  return reshape(permute(m, {2, 0, 1}), s);
}

Wire variance_of_all(Arguments a) {
  const Wire x = wire(a, 0);
  return mean_all(square(x - mean_all(x)));
}

}  // namespace norma
