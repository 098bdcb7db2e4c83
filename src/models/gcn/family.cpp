// x0 = features W + b; every layer is one graph convolution wired by the scheme, f(x) = A x W + b with A the mean over
// neighbours of Kipf and Welling 2017, arXiv 1609.02907; logits = final(x) V, of each node.
#include "models/gcn/family.h"

#include <cmath>

#include "models/model_builder.h"
#include "models/options.h"
#include "norma/core/error.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/linear.h"
#include "norma/ops/neighbours.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

constexpr const char* kGraphSizes[] = {"nodes", "edges", "features"};

void check_gcn(const ModelConfig& c) {
  for (const char* name : kGraphSizes) {
    if (size_of(c, name) < 1) fail("model.sizes.{} is not given; expected that of the graph", name);
  }
  if (c.batch != 1) fail("batch is {}; a gcn reads one graph, whole: expected 1", c.batch);
  if (c.classes < 2) fail("classes is {}; a gcn is a classifier and needs at least 2", c.classes);
  if (c.tied) fail("a gcn has no token table that its head could be tied to");
}

std::vector<InputSpec> graph_inputs(const ModelConfig& c) {
  const std::int64_t nodes = size_of(c, "nodes"), edges = size_of(c, "edges");
  return {{"features", InputSpec::Content::numbers, {{"nodes", nodes}, {"features", size_of(c, "features")}}},
          {"edges", InputSpec::Content::ids, {{"ends", 2}, {"edges", edges}}, nodes},
          {"degrees", InputSpec::Content::numbers, {{"nodes", nodes}}},
          {"targets", InputSpec::Content::targets, {{"nodes", nodes}}, c.classes}};
}

// A x: neighbours added up, by D^-1/2 on both sides ("symmetric"), divided by their number ("mean"), or as they are.
Wire aggregate(Wire x, const std::string& how) {
  Graph& graph = x.graph();
  const Wire edges = graph.find("edges"), degrees = graph.find("degrees");
  if (how == "sum") return neighbour_sum(x, edges);
  const std::int64_t nodes = x.shape()[0];
  if (how == "mean") return neighbour_sum(x, edges) * reshape(reciprocal(degrees), {nodes, 1, 1});
  const Wire half = reshape(rsqrt(degrees), {nodes, 1, 1});
  return neighbour_sum(x * half, edges) * half;
}

Wire build_graph_convolution(const BranchCall& call) {
  const std::string edges = call.options.text("edges");
  const Wire x = edges == "none" ? call.in : aggregate(call.in, edges);
  if (call.options.text("weight") == "none") return x;
  const auto scope = call.parameters.graph().scope("out");
  const std::int64_t width = x.shape().channels();
  const double xavier = std::sqrt(1 / static_cast<double>(width));
  const double deviation = call.rules.init.deviation_of("gcn").value_or(xavier) * call.rules.init.gain_of("gcn");
  ParameterSpec spec{.name = "weight",
                     .init = Init::normal(deviation),
                     .role = "gcn",
                     .unit = call.style.unit ? UnitVectors::columns : UnitVectors::none};
  call.rules.optimiser.apply("gcn", spec);
  Wire bias;
  if (call.style.biases) {
    ParameterSpec start{.name = "bias", .init = Init::constant(0), .role = "bias"};
    call.rules.optimiser.apply("bias", start);
    bias = call.parameters.share({width}, start);
  }
  return linear(x, call.parameters.share({width, width}, spec), bias, Activation::none);
}

std::vector<StackSites> gcn_stack(const ModelConfig& c) {
  return {{.layers = c.layers, .branches = {{.kind = &branch_kind("gcn"), .build = build_graph_convolution}}}};
}

void build_gcn(ModelBuilder& b) {
  const ModelConfig& c = b.config();
  const StackConfig stack = b.stack_config(0);
  const SchemeRules rules = b.rules(stack);
  const std::int64_t nodes = size_of(c, "nodes"), features = size_of(c, "features");
  const double deviation = std::sqrt(2 / static_cast<double>(features + c.width));
  const Wire weight = b.parameters().make(
      {features, c.width}, b.outer("embedding.weight", "embedding", deviation, rules, UnitVectors::rows));
  Wire bias;
  if (c.biases && b.scheme().weights.biases) {
    ParameterSpec spec{.name = "embedding.bias", .init = Init::constant(0), .role = "bias"};
    rules.optimiser.apply("bias", spec);
    bias = b.parameters().make({c.width}, spec);
  }
  const Wire x = b.dropped(linear(b.input("features"), weight, bias, Activation::none), "embedding");
  // Nodes are samples of one position: norms over the batch are over nodes, those of samples over channels.
  const Wire out = b.through(stack, reshape(x, {nodes, 1, c.width}));
  b.classify(reshape(out, {nodes, c.width}), c.classes, stack, rules);
}

}  // namespace

FamilyRow gcn_family() {
  return {.name = "gcn",
          .habit = "reads a whole graph and says the class of each node",
          .data = "graph",
          .sizes = {{"nodes", 64}, {"edges", 256}, {"features", 16}, {"classes", 4}},
          .batch = 1,
          .check = check_gcn,
          .inputs = graph_inputs,
          .output =
              [](const ModelConfig& c) {
                return OutputSpec{.shape = {size_of(c, "nodes"), c.classes}};
              },
          .positions = [](const ModelConfig& c) { return size_of(c, "nodes"); },
          .sites = gcn_stack,
          .build = build_gcn};
}

}  // namespace norma
