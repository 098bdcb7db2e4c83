// Streams are [nodes, 1, width]; every node is among its own neighbours, N(i) are the others, d counts all.
//   gcn   A x W + b, A = D^-1/2 (edges) D^-1/2                     Kipf, Welling 2017, arXiv 1609.02907
//   sage  x V + mean over N(i) of x[j] W + b                       Hamilton et al. 2017, arXiv 1706.02216
//   gin   mlp((1 + eps) x + sum over N(i) of x[j])                 Xu et al. 2019, arXiv 1810.00826
//   gat   attention over all neighbours of h = x W, + b, head by head: scores leaky(<query, h[i]> + <key, h[j]>)
//                                                                  Velickovic et al. 2018, arXiv 1710.10903
#include "models/gcn/convolution.h"

#include <cmath>

#include "models/options.h"
#include "norma/core/error.h"
#include "norma/models/stack.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/linear.h"
#include "norma/ops/neighbour_attention.h"
#include "norma/ops/neighbours.h"
#include "norma/ops/reduce.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

struct ConvolutionName {
  GraphConvolution convolution;
  const char* name;
  const char* usual;  // how neighbours are put together
};
constexpr ConvolutionName kConvolutions[] = {{GraphConvolution::gcn, "gcn", "symmetric"},
                                             {GraphConvolution::sage, "sage", "mean"},
                                             {GraphConvolution::gin, "gin", "sum"},
                                             {GraphConvolution::gat, "gat", "attention"}};

class ConvolutionBuilder {
 public:
  ConvolutionBuilder(const BranchCall& call, const ConvolutionName& convolution)
      : call_(call), name_(convolution.name), width_(call.in.shape().channels()), nodes_(call.in.shape()[0]) {
    Graph& graph = call.parameters.graph();
    edges_ = graph.find("edges");
    degrees_ = graph.find("degrees");
    how_ = call.options.text("edges");
    if (how_.empty()) how_ = convolution.usual;
    const bool gcn = convolution.convolution == GraphConvolution::gcn;
    if (!gcn && !call.options.text("weight").empty()) refuse("weight = \"none\"");
    const bool mixes = how_ == "mean" || how_ == "sum" || how_ == "max";
    if (!gcn && how_ != convolution.usual && (!mixes || convolution.convolution == GraphConvolution::gat))
      refuse(fmt::format("edges = \"{}\"", how_));
  }

  // A (x W): of x and x W the backward pass needs x alone, which is there anyway. What is largest does not commute.
  Wire gcn() const {
    const bool weighted = call_.options.text("weight") != "none";
    if (how_ == "none" || how_ == "max" || !weighted) {
      const Wire x = how_ == "none" ? call_.in : aggregate(call_.in);
      return weighted ? dense("out", x, width_, bias("out", width_)) : x;
    }
    const Wire product = dense("out", call_.in, width_, {}), b = bias("out", width_);
    return b ? aggregate(product) + b : aggregate(product);
  }

  Wire sage() const {
    return dense("out", others(call_.in), width_, bias("out", width_)) + dense("self", call_.in, width_, {});
  }

  Wire gin() const {
    ParameterSpec spec{.name = "eps", .init = Init::constant(0), .role = "learned"};
    call_.rules.optimiser.apply("learned", spec);
    const Wire own = call_.in * (call_.parameters.share({1}, spec) + 1.0);
    const std::string activation = call_.options.text("activation");
    const std::int64_t hidden = call_.stack.hidden == 0 ? width_ : call_.stack.hidden;
    const Wire inner = dense("in", own + others(call_.in), hidden, bias("in", hidden),
                             activation.empty() ? Activation::relu : parse_activation(activation));
    return dense("out", inner, width_, bias("out", width_));
  }

  Wire gat() const {
    const std::int64_t heads = call_.stack.heads, width = width_ / heads;
    if (width_ % heads != 0) fail("width {} is not divisible by {} heads", width_, heads);
    const Wire h = dense("out", call_.in, width_, {});
    const Wire by_head = reshape(h, {nodes_, heads, width});
    const auto score = [&](const char* name) {
      ParameterSpec spec{
          .name = name, .init = Init::normal(std::sqrt(2 / static_cast<double>(1 + width))), .role = "gcn_score"};
      call_.rules.optimiser.apply("gcn_score", spec);
      return reshape(sum_last(by_head * call_.parameters.share({heads, width}, spec)), {nodes_, heads});
    };
    const Wire y =
        neighbour_attention(reshape(h, {nodes_, width_}), score("query"), score("key"), edges_, {.heads = heads});
    const Wire out = reshape(y, call_.in.shape()), b = bias("out", width_);
    return b ? out + b : out;
  }

 private:
  [[noreturn]] void refuse(const std::string& option) const {
    throw NotBuiltError(fmt::format("f(x, {}) is not for model.convolution = \"{}\"", option, name_));
  }

  // Over all neighbours, the node itself among them.
  Wire aggregate(Wire x) const {
    if (how_ == "sum") return neighbour_sum(x, edges_);
    if (how_ == "max") return neighbour_max(x, edges_);
    if (how_ == "mean") return neighbour_sum(x, edges_, of_degrees(Unary::reciprocal));
    const Wire half = of_degrees(Unary::rsqrt);
    return neighbour_sum(x, edges_, half, half);
  }

  // Made by the first layer for all: degrees are those of every layer.
  Wire of_degrees(Unary function) const {
    Graph& graph = call_.parameters.graph();
    for (const Node& node : graph.nodes()) {
      const auto* op = dynamic_cast<const UnaryOp*>(node.op.get());
      if (op != nullptr && op->function() == function && node.inputs[0] == degrees_.id())
        return Wire(&graph, node.outputs[0]);
    }
    return unary(function, degrees_);
  }

  // Over N(i); a node that stands alone gets zeros. The largest is over the node itself as well.
  Wire others(Wire x) const {
    if (how_ == "max") return neighbour_max(x, edges_);
    const Wire sum = neighbour_sum(x, edges_) - x;
    if (how_ == "sum") return sum;
    const Wire alone = 1.0 - step(degrees_ - 1.0);
    return sum * reshape(reciprocal(degrees_ - 1.0 + alone), {nodes_, 1, 1});
  }

  Wire bias(const char* scope_name, std::int64_t width) const {
    if (!call_.style.biases) return {};
    const auto scope = call_.parameters.graph().scope(scope_name);
    ParameterSpec spec{.name = "bias", .init = Init::constant(0), .role = "bias"};
    call_.rules.optimiser.apply("bias", spec);
    return call_.parameters.share({width}, spec);
  }

  Wire dense(const char* scope_name, Wire x, std::int64_t out, Wire bias,
             Activation activation = Activation::none) const {
    const auto scope = call_.parameters.graph().scope(scope_name);
    const std::int64_t in = x.shape().channels();
    const double xavier = std::sqrt(2 / static_cast<double>(in + out));
    const InitRules& init = call_.rules.init;
    ParameterSpec spec{.name = "weight",
                       .init = Init::normal(init.deviation_of("gcn").value_or(xavier) * init.gain_of("gcn")),
                       .role = "gcn",
                       .unit = call_.style.unit ? UnitVectors::columns : UnitVectors::none};
    call_.rules.optimiser.apply("gcn", spec);
    return linear(x, call_.parameters.share({in, out}, spec), bias, activation);
  }

  const BranchCall& call_;
  std::string name_, how_;
  std::int64_t width_, nodes_;
  Wire edges_, degrees_;
};

Wire build_convolution(const BranchCall& call, const ConvolutionName& convolution) {
  const ConvolutionBuilder builder(call, convolution);
  switch (convolution.convolution) {
    case GraphConvolution::gcn: return builder.gcn();
    case GraphConvolution::sage: return builder.sage();
    case GraphConvolution::gin: return builder.gin();
    case GraphConvolution::gat: return builder.gat();
  }
  fail("the convolution {} cannot be built", convolution.name);
}

}  // namespace

LayerBranch graph_convolution_branch(GraphConvolution convolution) {
  for (const ConvolutionName& row : kConvolutions) {
    if (row.convolution != convolution) continue;
    return {.kind = &branch_kind("gcn"),
            .build = [&row](const BranchCall& call) { return build_convolution(call, row); }};
  }
  fail("there is no such graph convolution");
}

}  // namespace norma
