// x0 = features W + b; every layer is one graph convolution wired by the scheme; logits = final(x) V, of each node, or
// of each graph after its nodes were put together.
#include "models/gcn/family.h"

#include <algorithm>
#include <cmath>

#include "models/gcn/convolution.h"
#include "models/model_builder.h"
#include "norma/core/error.h"
#include "norma/models/branch_tables.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/linear.h"
#include "norma/ops/segments.h"
#include "norma/ops/sparse_product.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

constexpr const char* kGraphSizes[] = {"nodes", "edges", "features"};

void check_graph_model(const ModelConfig& c) {
  for (const char* name : kGraphSizes) {
    if (size_of(c, name) < 1) fail("model.sizes.{} is not given; expected that of the graph", name);
  }
  const std::string& family = c.family->name;
  if (c.classes < 2)
    fail("classes is {}; a model of the family {} is a classifier and needs at least 2", c.classes, family);
  if (c.tied) fail("a model of the family {} has no token table that its head could be tied to", family);
}

void check_gcn(const ModelConfig& c) {
  check_graph_model(c);
  if (c.batch != 1) fail("batch is {}; a gcn reads one graph, whole: expected 1", c.batch);
}

// Of nodes that are not there both ends are `nodes`.
std::vector<InputSpec> graph_inputs(const ModelConfig& c) {
  const std::int64_t nodes = size_of(c, "nodes"), edges = size_of(c, "edges");
  return {{"features", InputSpec::Content::numbers, {{"nodes", nodes}, {"features", size_of(c, "features")}}},
          {"edges", InputSpec::Content::ids, {{"ends", 2}, {"edges", edges}}, nodes + 1},
          {"degrees", InputSpec::Content::numbers, {{"nodes", nodes}}}};
}

std::vector<InputSpec> gcn_inputs(const ModelConfig& c) {
  std::vector<InputSpec> inputs = graph_inputs(c);
  inputs.push_back({"targets", InputSpec::Content::targets, {{"nodes", size_of(c, "nodes")}}, c.classes});
  return inputs;
}

std::vector<InputSpec> graphs_inputs(const ModelConfig& c) {
  std::vector<InputSpec> inputs = graph_inputs(c);
  inputs.push_back({"graph_of", InputSpec::Content::ids, {{"nodes", size_of(c, "nodes")}}, c.batch + 1});
  inputs.push_back({"targets", InputSpec::Content::targets, {{"batch", c.batch}}, c.classes});
  return inputs;
}

std::vector<StackSites> graph_stack(const ModelConfig& c) {
  return {{.layers = c.layers, .branches = {graph_convolution_branch(c.convolution)}}};
}

// [nodes, width] behind the stack.
Wire build_nodes(ModelBuilder& b, const StackConfig& stack, const SchemeRules& rules) {
  const ModelConfig& c = b.config();
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
  // So many features are words or the like, of which a node has few.
  constexpr std::int64_t kManyFeatures = 256;
  const bool sparse = features >= kManyFeatures;
  const Wire product = sparse ? sparse_product(b.input("features"), weight) : Wire();
  const Wire embedded = !sparse ? linear(b.input("features"), weight, bias, Activation::none)
                        : bias  ? product + bias
                                : product;
  const Wire x = b.dropped(embedded, "embedding");
  // Nodes are samples of one position: norms over the batch are over nodes, those of samples over channels.
  return reshape(b.through(stack, reshape(x, {nodes, 1, c.width})), {nodes, c.width});
}

void build_gcn(ModelBuilder& b) {
  const StackConfig stack = b.stack_config(0);
  const SchemeRules rules = b.rules(stack);
  b.classify(build_nodes(b, stack, rules), b.config().classes, stack, rules);
}

void build_graphs(ModelBuilder& b) {
  const ModelConfig& c = b.config();
  const StackConfig stack = b.stack_config(0);
  const SchemeRules rules = b.rules(stack);
  const Wire nodes = build_nodes(b, stack, rules);
  b.classify(segment_reduce(c.readout, nodes, b.input("graph_of"), c.batch), c.classes, stack, rules);
}

// The stream has all nodes of a batch.
std::int64_t nodes_of(const ModelConfig& c) { return std::max<std::int64_t>(1, size_of(c, "nodes") / c.batch); }

// GCNII takes a graph convolution apart, which only one of them lets happen.
bool fits_convolution(const ModelConfig& c, std::string_view scheme) {
  return scheme != "gcnii" || c.convolution == GraphConvolution::gcn;
}

double no_variance_of_nodes(const ModelConfig&, const SchemeRules&) {
  throw NotPredictedError(
      "the theory has no rule for graph convolutions: what a node gets from its neighbours depends on the graph; "
      "`norma "
      "inspect --only smoothing` puts a theory of linear layers beside what it measures");
}

}  // namespace

FamilyRow gcn_family() {
  return {.name = "gcn",
          .habit = "reads a whole graph and says the class of each node",
          .data = "graph",
          .sizes = {{"nodes", 64}, {"edges", 256}, {"features", 16}, {"classes", 4}},
          .batch = 1,
          .check = check_gcn,
          .inputs = gcn_inputs,
          .output =
              [](const ModelConfig& c) {
                return OutputSpec{.shape = {size_of(c, "nodes"), c.classes}};
              },
          .positions = nodes_of,
          .sites = graph_stack,
          .build = build_gcn,
          .start = no_variance_of_nodes,
          .study = {.schemes = {"gcn", "gcn_res", "graph_post", "res_plus", "pairnorm", "gcnii"},
                    .fits = fits_convolution,
                    .keys = {"model.head_std=0.2"},
                    .depths = {6, 12, 24}}};
}

FamilyRow graphs_family() {
  return {.name = "graphs",
          .habit = "reads several small graphs at once and says the class of each",
          .data = "graphs",
          .sizes = {{"nodes", 64}, {"edges", 256}, {"features", 3}, {"classes", 2}},
          .check = check_graph_model,
          .inputs = graphs_inputs,
          .output =
              [](const ModelConfig& c) {
                return OutputSpec{.shape = {c.batch, c.classes}};
              },
          .positions = nodes_of,
          .sites = graph_stack,
          .build = build_graphs,
          .start = no_variance_of_nodes,
          .study = {.schemes = {"gcn", "gcn_res", "graph_post", "res_plus", "pairnorm", "gcnii"},
                    .fits = fits_convolution,
                    // Plain layers begin to learn between 100 and 200 steps, and later with twice the depth.
                    .keys = {"model.head_std=0.2", "model.layers=6", "model.batch=32", "train.steps=200",
                             "data.settings.graphs=10000", "data.evaluation_batches=31"},
                    .rates = {3e-3, 1e-2, 3e-2},
                    .depths = {6, 12, 24}}};
}

}  // namespace norma
