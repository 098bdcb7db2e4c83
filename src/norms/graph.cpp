// GraphNorm: Cai et al. 2021, arXiv 2009.03294. PairNorm: Zhao and Akoglu 2020, arXiv 1909.12223. MeanNorm: Yang et al.
// 2020, arXiv 2003.13663. They run as their references: each is a few passes over nodes, which are few beside edges.
#include "norma/norms/graph.h"

#include "norma/core/error.h"
#include "norma/graph/graph.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduce.h"
#include "norma/ops/segments.h"
#include "norma/ops/views.h"
#include "ops/check.h"

namespace norma {
namespace {

// Of rows [rows, width]: the mean of each channel over the rows of its graph, for every row or once for all.
Wire node_means(Wire rows, Wire ids, std::int64_t segments) {
  if (ids) return segment_spread(segment_reduce(Segmented::mean, rows, ids, segments), ids);
  const Wire count = rows.graph().fill({{1}, rows.dtype()}, static_cast<double>(rows.shape()[0]));
  return sum_to(rows, {1, rows.shape()[1]}) / count;
}

Wire applied(NodeNorm::Kind kind, Wires in, const NodeSegments& segments) {
  if (segments.ids) in.push_back(segments.ids);
  return in[0].graph().apply(std::make_shared<NodeNorm>(kind, segments.ids ? segments.count : 0), in)[0];
}

}  // namespace

std::string_view NodeNorm::name() const {
  return kind_ == Kind::graph ? "graph_norm" : kind_ == Kind::pair ? "pair_norm" : "mean_norm";
}

std::string NodeNorm::attributes() const { return segments_ == 0 ? "" : fmt::format("segments={}", segments_); }

std::size_t NodeNorm::count() const { return kind_ == Kind::graph ? 5 : kind_ == Kind::pair ? 2 : 1; }

std::vector<Type> NodeNorm::infer(std::span<const Type> in) const {
  check_count(in.size(), count() + (segments_ == 0 ? 0 : 1));
  check_computes(in[0]);
  const Shape& x = in[0].shape;
  if (x.rank() < 2) fail("needs [nodes, channels], but is given {}", in[0].str());
  if (kind_ != Kind::mean) check_type("eps", in[1], {{1}, in[0].dtype});
  for (std::size_t i = 2; i < count(); ++i)
    check_type(i == 2 ? "alpha" : i == 3 ? "gain" : "bias", in[i], {{x.channels()}, in[0].dtype});
  if (segments_ > 0) check_type("ids of segments", in.back(), {{x.rows()}, DType::i32});
  return {in[0]};
}

Wires NodeNorm::reference(std::span<const Wire> in) const {
  const Wire ids = segments_ == 0 ? Wire() : in.back();
  const Wire x = reshape(in[0], {in[0].shape().rows(), in[0].shape().channels()});
  const Wire mean = node_means(x, ids, segments_);
  if (kind_ == Kind::mean) return {reshape(x - mean, in[0].shape())};
  const Wire z = x - (kind_ == Kind::graph ? mean * in[2] : mean);
  const Wire squares = kind_ == Kind::graph ? square(z) : sum_last(square(z));
  const Wire y = z * rsqrt(node_means(squares, ids, segments_) + in[1]);
  return {reshape(kind_ == Kind::graph ? y * in[3] + in[4] : y, in[0].shape())};
}

Cost NodeNorm::cost(std::span<const Type> in, std::span<const Type> out) const {
  return {.flops = static_cast<double>(in[0].shape.elements()) * (kind_ == Kind::mean ? 2 : 7),
          .bytes = traffic(in, out) + static_cast<double>(in[0].bytes()) * (kind_ == Kind::mean ? 1 : 2)};
}

Wire graph_norm(Wire x, Wire alpha, Wire gain, Wire bias, Scalar eps, const NodeSegments& segments) {
  return applied(NodeNorm::Kind::graph, {x, eps.beside(x), alpha, gain, bias}, segments);
}

Wire pair_norm(Wire x, Scalar eps, const NodeSegments& segments) {
  return applied(NodeNorm::Kind::pair, {x, eps.beside(x)}, segments);
}

Wire mean_norm(Wire x, const NodeSegments& segments) { return applied(NodeNorm::Kind::mean, {x}, segments); }

}  // namespace norma
