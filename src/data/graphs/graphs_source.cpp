#include "data/graphs/graphs_source.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "data/graphs/graph_source.h"
#include "data/permutation.h"
#include "data/settings.h"
#include "norma/core/error.h"

namespace norma {
namespace {

// What the `count` largest come to.
std::int64_t largest_together(std::vector<std::int64_t> sizes, std::int64_t count) {
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  if (std::ssize(sizes) > count) sizes.resize(static_cast<std::size_t>(count));
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
}

void check_graphs(const std::string& name, const GraphsData& data, std::int64_t batch) {
  if (std::ssize(data.training) < batch)
    fail("{} has {} graphs to train on and model.batch is {}; expected at most as many", name, data.training.size(),
         batch);
  if (data.held_out.empty()) fail("{} has no held-out graphs; expected a larger data.validation_fraction", name);
  std::vector<std::int64_t> taught(static_cast<std::size_t>(data.classes), 0);
  for (const auto* graphs : {&data.training, &data.held_out}) {
    for (const SmallGraph& graph : *graphs) {
      if (graph.label < 0 || graph.label >= data.classes)
        fail("{}: a graph has the label {}; expected 0 to {}", name, graph.label, data.classes - 1);
      if (graphs == &data.training) ++taught[static_cast<std::size_t>(graph.label)];
    }
  }
  const auto empty = std::find(taught.begin(), taught.end(), 0);
  if (empty != taught.end()) fail("{} has no graph of class {} to train on", name, empty - taught.begin());
}

}  // namespace

std::vector<GraphsSource::Neighbours> GraphsSource::neighbours_of(const std::string& name,
                                                                  const std::vector<SmallGraph>& graphs) {
  std::vector<Neighbours> all;
  for (const SmallGraph& graph : graphs) {
    for (const auto& [a, b] : graph.edges) {
      if (std::min(a, b) < 0 || std::max(a, b) >= graph.nodes)
        fail("{}: a graph of {} nodes has an edge between {} and {}", name, graph.nodes, a, b);
    }
    Neighbours one{.pairs = neighbour_pairs(graph.nodes, graph.edges), .edge = {}};
    std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> number;
    for (const auto& [node, other] : one.pairs) {
      const auto either = std::minmax(node, other);
      one.edge.push_back(
          node == other ? -1 : number.try_emplace(either, static_cast<std::int32_t>(number.size())).first->second);
    }
    one.edges = std::ssize(number);
    all.push_back(std::move(one));
  }
  return all;
}

GraphsSource::GraphsSource(std::string name, GraphsData data, const DataConfig& config, const BatchShape& shape)
    : name_(std::move(name)),
      data_(std::move(data)),
      batch_(shape.batch),
      most_evaluations_(config.evaluation_batches),
      drop_(number_setting(config, "drop_edge", 0, 0, 0.99)) {
  check_graphs(name_, data_, batch_);
  training_ = neighbours_of(name_, data_.training);
  held_out_ = neighbours_of(name_, data_.held_out);
  for (const auto* of : {&training_, &held_out_}) {
    std::vector<std::int64_t> nodes, pairs;
    for (const SmallGraph& graph : of == &training_ ? data_.training : data_.held_out) nodes.push_back(graph.nodes);
    for (const Neighbours& one : *of) pairs.push_back(std::ssize(one.pairs));
    nodes_ = std::max(nodes_, largest_together(nodes, batch_));
    pairs_ = std::max(pairs_, largest_together(pairs, batch_));
  }
  nodes_ = (nodes_ + batch_ - 1) / batch_ * batch_;  // as many for each graph in the mean
}

std::map<std::string, std::int64_t> GraphsSource::sizes() const {
  return {{"classes", data_.classes}, {"nodes", nodes_}, {"edges", pairs_}, {"features", data_.features}};
}

std::string GraphsSource::describe_graphs() const {
  std::int64_t nodes = 0, edges = 0, bare = 0;
  for (const auto* of : {&training_, &held_out_}) {
    for (const SmallGraph& graph : of == &training_ ? data_.training : data_.held_out) nodes += graph.nodes;
    for (const Neighbours& one : *of) edges += one.edges;
    bare += std::ranges::count(*of, std::int64_t{0}, &Neighbours::edges);
  }
  const auto count = static_cast<double>(training_.size() + held_out_.size());
  std::string text = fmt::format(
      "{} graphs to train on and {} held out, in {} classes, of {:.1f} nodes and {:.1f} edges "
      "in the mean, {} features",
      training_.size(), held_out_.size(), data_.classes, static_cast<double>(nodes) / count,
      static_cast<double>(edges) / count, data_.features);
  if (bare > 0) text += fmt::format("; without edges, their nodes know themselves alone: {}", bare);
  return text;
}

void GraphsSource::begin(Batch& batch) const {
  std::ranges::fill(batch.numbers("features", {nodes_, data_.features}), 0.0f);
  std::ranges::fill(batch.ids("edges", {2, pairs_}), static_cast<std::int32_t>(nodes_));
  std::ranges::fill(batch.numbers("degrees", {nodes_}), 1.0f);
  std::ranges::fill(batch.ids("graph_of", {nodes_}), static_cast<std::int32_t>(batch_));
  std::ranges::fill(batch.ids("targets", {batch_}), kIgnored);
}

void GraphsSource::add(const SmallGraph& graph, const Neighbours& neighbours, const std::vector<char>& kept,
                       std::int64_t row, std::int64_t& nodes, std::int64_t& pairs, Batch& batch) const {
  std::ranges::copy(graph.values, batch.numbers("features", {nodes_, data_.features}).begin() + nodes * data_.features);
  Batch::Ids& edges = batch.ids("edges");
  Batch::Numbers& degrees = batch.numbers("degrees", {nodes_});
  std::fill_n(degrees.begin() + nodes, graph.nodes, 0.0f);
  std::fill_n(batch.ids("graph_of").begin() + nodes, graph.nodes, static_cast<std::int32_t>(row));
  batch.ids("targets")[static_cast<std::size_t>(row)] = graph.label;
  for (std::size_t pair = 0; pair < neighbours.pairs.size(); ++pair) {
    const std::int32_t edge = neighbours.edge[pair];
    if (edge >= 0 && !kept.empty() && kept[static_cast<std::size_t>(edge)] == 0) continue;
    const auto [node, other] = neighbours.pairs[pair];
    edges[static_cast<std::size_t>(pairs)] = node + static_cast<std::int32_t>(nodes);
    edges[static_cast<std::size_t>(pairs_ + pairs)] = other + static_cast<std::int32_t>(nodes);
    ++degrees[static_cast<std::size_t>(nodes + node)];
    ++pairs;
  }
  nodes += graph.nodes;
}

void GraphsSource::fill(std::uint64_t index, std::uint64_t seed, Batch& batch) const {
  begin(batch);
  const auto count = data_.training.size();
  const std::uint64_t an_epoch = count / static_cast<std::uint64_t>(batch_), first = index % an_epoch;
  const Permutation permutation(count, seed, index / an_epoch);
  std::int64_t nodes = 0, pairs = 0;
  for (std::int64_t row = 0; row < batch_; ++row) {
    const auto at = static_cast<std::size_t>(
        permutation(first * static_cast<std::uint64_t>(batch_) + static_cast<std::uint64_t>(row)));
    std::vector<char> kept;
    if (drop_ > 0) {
      Draws draws(seed, hash_name("data.drop_edge"), index, static_cast<std::uint32_t>(row));
      for (std::int64_t edge = 0; edge < training_[at].edges; ++edge) kept.push_back(draws.unit() >= drop_ ? 1 : 0);
    }
    add(data_.training[at], training_[at], kept, row, nodes, pairs, batch);
  }
}

std::int64_t GraphsSource::evaluation_batches() const {
  const std::int64_t all = (std::ssize(data_.held_out) + batch_ - 1) / batch_;
  return most_evaluations_ == 0 ? all : std::min(all, most_evaluations_);
}

void GraphsSource::fill_evaluation(std::int64_t index, Batch& batch) const {
  NORMA_ASSERT(index >= 0 && index < evaluation_batches());
  begin(batch);
  std::int64_t nodes = 0, pairs = 0;
  for (std::int64_t row = 0; row < batch_; ++row) {
    const auto at = static_cast<std::size_t>(index * batch_ + row);
    if (at < data_.held_out.size()) add(data_.held_out[at], held_out_[at], {}, row, nodes, pairs, batch);
  }
}

}  // namespace norma
