#include "data/graphs/graph_source.h"

#include <algorithm>
#include <map>

#include "data/settings.h"
#include "norma/core/error.h"

namespace norma {
namespace {

using NodePart = GraphData::Part;

void check_graph(const std::string& name, const GraphData& data) {
  const bool none = std::ranges::all_of(data.edges, [](const auto& edge) { return edge.first == edge.second; });
  if (none) fail("{} has {} nodes and no edges between two nodes; expected some", name, data.nodes);
  for (const auto& [a, b] : data.edges) {
    if (a < 0 || a >= data.nodes || b < 0 || b >= data.nodes)
      fail("{} has an edge between {} and {}, but nodes are 0 to {}", name, a, b, data.nodes - 1);
  }
  if (data.classes < 2) fail("{} has nodes of one class only; expected at least two", name);
  std::vector<std::int64_t> taught(static_cast<std::size_t>(data.classes), 0);
  for (std::size_t i = 0; i < data.labels.size(); ++i) {
    if (data.labels[i] < 0 || data.labels[i] >= data.classes)
      fail("{}: node {} has the label {}; expected 0 to {}", name, i, data.labels[i], data.classes - 1);
    if (data.parts[i] == NodePart::training) ++taught[static_cast<std::size_t>(data.labels[i])];
  }
  const auto empty = std::find(taught.begin(), taught.end(), 0);
  if (empty != taught.end())
    fail("{} has no node of class {} to train on, but labels up to {}", name, empty - taught.begin(), data.classes - 1);
  for (const NodePart part : {NodePart::validation, NodePart::test}) {
    if (std::find(data.parts.begin(), data.parts.end(), part) == data.parts.end())
      fail("{} has no nodes in its {} part", name, part == NodePart::test ? "test" : "validation");
  }
}

}  // namespace

std::vector<std::pair<std::int32_t, std::int32_t>> neighbour_pairs(
    std::int64_t nodes, const std::vector<std::pair<std::int32_t, std::int32_t>>& edges) {
  std::vector<std::pair<std::int32_t, std::int32_t>> all;
  for (const auto& [a, b] : edges) all.insert(all.end(), {{a, b}, {b, a}});
  for (std::int32_t node = 0; node < nodes; ++node) all.emplace_back(node, node);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

GraphSource::GraphSource(std::string name, GraphData data, const DataConfig& config)
    : name_(std::move(name)), data_(std::move(data)), drop_(number_setting(config, "drop_edge", 0, 0, 0.99)) {
  check_graph(name_, data_);
  const std::vector<std::pair<std::int32_t, std::int32_t>> all = neighbour_pairs(data_.nodes, data_.edges);
  degrees_.assign(static_cast<std::size_t>(data_.nodes), 0);
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> number;
  for (const auto& [node, neighbour] : all) {
    edges_.push_back(node);
    ++degrees_[static_cast<std::size_t>(node)];
    const auto either = std::minmax(node, neighbour);
    both_ways_.push_back(
        node == neighbour ? -1 : number.try_emplace(either, static_cast<std::int32_t>(number.size())).first->second);
  }
  for (const auto& [node, neighbour] : all) edges_.push_back(neighbour);
  single_ = std::ssize(number);
  loops_ = std::ranges::count_if(data_.edges, [](const auto& edge) { return edge.first == edge.second; });
  repeated_ = std::ssize(data_.edges) - loops_ - single_;
}

std::string GraphSource::describe_edges() const {
  std::string text = fmt::format("{} edges", single_);
  if (repeated_ > 0) text += fmt::format(" (given twice and counted once: {})", repeated_);
  if (loops_ > 0) text += fmt::format(" (from a node to itself, where there is one anyway: {})", loops_);
  return text;
}

std::map<std::string, std::int64_t> GraphSource::sizes() const {
  return {{"classes", data_.classes},
          {"nodes", data_.nodes},
          {"edges", static_cast<std::int64_t>(edges_.size()) / 2},
          {"features", data_.features}};
}

void GraphSource::write(NodePart part, Batch& batch) const {
  batch.constant("features", {data_.nodes, data_.features}, data_.values, features_content_);
  batch.constant("edges", {2, static_cast<std::int64_t>(edges_.size()) / 2}, edges_, edges_content_);
  batch.constant("degrees", {data_.nodes}, degrees_, degrees_content_);
  Batch::Ids& targets = batch.ids("targets", {data_.nodes});
  for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = data_.parts[i] == part ? data_.labels[i] : kIgnored;
}

void GraphSource::drop_edges(std::uint64_t index, std::uint64_t seed, Batch& batch) const {
  std::vector<char> kept;
  Draws draws(seed, hash_name("data.drop_edge"), index, 0);
  for (std::int64_t edge = 0; edge < single_; ++edge) kept.push_back(draws.unit() >= drop_ ? 1 : 0);
  Batch::Ids& edges = batch.ids("edges");
  Batch::Numbers& degrees = batch.numbers("degrees", {data_.nodes});
  std::ranges::fill(edges, static_cast<std::int32_t>(data_.nodes));
  std::ranges::fill(degrees, 0.0f);
  const std::size_t count = both_ways_.size();
  for (std::size_t pair = 0, to = 0; pair < count; ++pair) {
    if (both_ways_[pair] >= 0 && kept[static_cast<std::size_t>(both_ways_[pair])] == 0) continue;
    edges[to] = edges_[pair];
    edges[count + to++] = edges_[count + pair];
    ++degrees[static_cast<std::size_t>(edges_[pair])];
  }
}

void GraphSource::fill(std::uint64_t index, std::uint64_t seed, Batch& batch) const {
  write(NodePart::training, batch);
  if (drop_ > 0) drop_edges(index, seed, batch);
}

void GraphSource::fill_evaluation(std::int64_t index, Batch& batch) const {
  NORMA_ASSERT(index == 0 || index == 1);
  write(index == 0 ? NodePart::validation : NodePart::test, batch);
}

}  // namespace norma
