// A random graph of Cora's size: 2,708 nodes, 5,278 edges, 1,433 features, 7 classes, 140 nodes to train on. Kernels
// are shares of copies within the cache: the least that moves is a row for every pair of neighbours, read, and one for
// every node, written.
#include "bench/graphs.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "bench/isolate.h"
#include "device/cpu/cpu_session.h"
#include "norma/backends/device.h"
#include "norma/core/random.h"
#include "norma/graph/differentiate.h"
#include "norma/ops/neighbour_attention.h"
#include "norma/ops/neighbours.h"
#include "norma/ops/segments.h"
#include "norma/train/optimiser.h"
#include "norma/train/step.h"

namespace norma::bench {
namespace {

constexpr std::int64_t kNodes = 2708, kEdges = 5278, kFeatures = 1433, kClasses = 7, kTaught = 140;

// Pairs in both directions and of each node with itself, sorted, [2, pairs].
std::vector<std::int32_t> citation_pairs() {
  std::set<std::pair<std::int32_t, std::int32_t>> pairs;
  for (std::int32_t node = 0; node < kNodes; ++node) pairs.emplace(node, node);
  const RandomStream stream(1, "bench.graph");
  for (std::uint64_t i = 0; std::ssize(pairs) < kNodes + 2 * kEdges; i += 2) {
    const auto a = static_cast<std::int32_t>(stream.below(i, kNodes)),
               b = static_cast<std::int32_t>(stream.below(i + 1, kNodes));
    if (a != b) pairs.insert({{a, b}, {b, a}});
  }
  std::vector<std::int32_t> edges;
  for (const auto& [node, other] : pairs) edges.push_back(node);
  for (const auto& [node, other] : pairs) edges.push_back(other);
  return edges;
}

// Ids of an isolated op: the pairs of the graph, or nodes in blocks of 22, about the size of a molecule.
void fill_ids(Session& session, const std::vector<std::int32_t>& edges) {
  for (const std::string& name : session.plan().slot_names(Role::input)) {
    const Type type = session.plan().slot(name).type;
    if (type.dtype != DType::i32) continue;
    std::vector<std::int32_t> ids = edges;
    if (type.shape.rank() == 1) {
      ids.clear();
      for (std::int32_t node = 0; node < kNodes; ++node) ids.push_back(node / 22);
    } else if (type.shape[0] != 2) {  // which row was the largest
      ids.assign(static_cast<std::size_t>(type.shape.elements()), 0);
      for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i % kNodes);
    }
    session.write<std::int32_t>(name, ids);
  }
}

struct GraphKernel {
  const char *name, *op;
  double rows;  // of all that is read and written, in rows of the stream
};

void bench_kernels(Report& report, const Options& options, std::int64_t width) {
  const std::vector<std::int32_t> edges = citation_pairs();
  const auto pairs = static_cast<std::int64_t>(edges.size() / 2);
  constexpr std::int64_t kHeads = 4, kGraphs = (kNodes + 21) / 22;
  const double n = static_cast<double>(kNodes), e = static_cast<double>(pairs), s = static_cast<double>(kGraphs);
  Graph g;
  const Type nodes{{kNodes, width}, DType::f32}, of_heads{{kNodes, kHeads}, DType::f32}, of_nodes{{kNodes}, DType::f32};
  const Wire x = g.input("x", nodes), pair = g.input("edges", {{2, pairs}, DType::i32});
  const Wire half = g.input("half", of_nodes), query = g.input("query", of_heads), key = g.input("key", of_heads);
  const Wire ids = g.input("ids", {{kNodes}, DType::i32});
  const Wire attended = neighbour_attention(x, query, key, pair, {.heads = kHeads});
  const Wire largest = neighbour_max(x, pair);
  for (const Wire y : {neighbour_sum(x, pair), neighbour_sum(x, pair, half, half), largest, attended,
                       segment_reduce(Segmented::mean, x, ids, kGraphs)})
    g.output("y" + std::to_string(y.id()), y);
  const Wire out[] = {attended, largest}, dout[] = {g.input("dy", nodes), g.input("dl", nodes)},
             wrt[] = {x, query, key};
  const Wires gradients = pull_back(out, dout, wrt);
  for (std::size_t i = 0; i < 3; ++i) g.output("d" + std::to_string(i), gradients[i]);
  const GraphKernel kernels[] = {{"neighbour sum", "neighbour_sum", e + n},
                                 {"neighbour sum by degrees", "neighbour_scaled", e + n},
                                 {"neighbour max", "neighbour_max", e + 2 * n},
                                 {"neighbour max backward", "scatter_picked", 3 * n},
                                 {"neighbour attention", "neighbour_attention", e + n},
                                 {"neighbour attention backward", "neighbour_attention_backward", 2 * e + 4 * n},
                                 {"segment mean", "segment_reduce", n + s}};
  for (const GraphKernel& kernel : kernels) {
    const std::string name = fmt::format("graph/{}/{}x{}", kernel.name, kNodes, width);
    if (!options.wants(name)) continue;
    CpuSession session(isolate(g, kernel.op).plan, {.members = 1, .threads = options.threads});
    fill_inputs(session);
    fill_ids(session, edges);
    const Timing timing = time_repeated([&] { session.run(); }, options.seconds);
    report.add_rate(name, 4e-9 * kernel.rows * static_cast<double>(width), timing, "GB/s", "cache_copy_gbps");
  }
}

void prepare_graph(Session& session, const TrainingStep& step) {
  initialise(session, step.parameters, 1);
  const std::vector<std::int32_t> edges = citation_pairs();
  std::vector<float> degrees(kNodes, 0), features(kNodes * kFeatures, 0);
  for (std::size_t i = 0; i < edges.size() / 2; ++i) ++degrees[static_cast<std::size_t>(edges[i])];
  const RandomStream stream(1, "bench.features");
  for (std::int64_t node = 0; node < kNodes; ++node) {  // 18 words a node, as in Cora
    for (std::uint64_t i = 0; i < 18; ++i)
      features[static_cast<std::size_t>(node * kFeatures) +
               stream.below(static_cast<std::uint64_t>(node) * 18 + i, kFeatures)] = 1.0f / 18;
  }
  std::vector<std::int32_t> targets(kNodes, -100);
  for (std::int32_t node = 0; node < kTaught; ++node) targets[static_cast<std::size_t>(node)] = node % kClasses;
  session.write<float>("features", features);
  session.write<float>("degrees", degrees);
  session.write<std::int32_t>("edges", edges);
  session.write<std::int32_t>("targets", targets);
  const ControlBlock control = control_block({.weight_decay = 0.01}, 1e-3, 1, 1);
  session.write<float>("control", std::vector<float>(control.begin(), control.end()));
}

void bench_graph_step(Report& report, GraphConvolution convolution, const char* label, std::int64_t layers,
                      const Options& options) {
  const std::string name = fmt::format("step/{} {} layers d=64 Cora's size", label, layers);
  if (!options.wants(name)) return;
  ModelConfig config{.family = "gcn", .layers = layers, .width = 64, .heads = 4, .classes = kClasses, .batch = 1};
  config.scheme = "gcn";
  config.convolution = convolution;
  config.sizes = {{"nodes", kNodes}, {"edges", kNodes + 2 * kEdges}, {"features", kFeatures}};
  const TrainingStep step = build_training_step(config, {});
  const auto session = make_session(step.plan, {.members = 1, .threads = options.threads});
  prepare_graph(*session, step);
  const Timing timing = time_repeated([&] { session->run(Watching::no); }, 2 * options.seconds);
  report.add_rate(name, model_flops(config) * 1e-9, timing, "GFLOP/s", "sgemm_gflops");
  report.add_rate(name + "/steps", 1, timing, "steps/s", "");
}

}  // namespace

void bench_graphs(Report& report, const Options& options) {
  bench_kernels(report, options, 64);
  bench_graph_step(report, GraphConvolution::gcn, "gcn", 32, options);
  bench_graph_step(report, GraphConvolution::sage, "sage", 32, options);
  bench_graph_step(report, GraphConvolution::gin, "gin", 32, options);
  bench_graph_step(report, GraphConvolution::gat, "gat", 32, options);
}

}  // namespace norma::bench
