#include "data/graphs/graph_source.h"

#include <algorithm>

#include "norma/core/error.h"

namespace norma {
namespace {

using NodePart = GraphData::Part;

void check_graph(const std::string& name, const GraphData& data) {
  if (data.edges.empty()) fail("{} has {} nodes and no edges; expected some", name, data.nodes);
  for (const auto& [a, b] : data.edges) {
    if (a < 0 || a >= data.nodes || b < 0 || b >= data.nodes)
      fail("{} has an edge between {} and {}, but nodes are 0 to {}", name, a, b, data.nodes - 1);
  }
  std::vector<std::int64_t> taught(static_cast<std::size_t>(data.classes), 0);
  for (std::size_t i = 0; i < data.labels.size(); ++i) {
    if (data.labels[i] < 0 || data.labels[i] >= data.classes)
      fail("{}: node {} has the label {}; expected 0 to {}", name, i, data.labels[i], data.classes - 1);
    if (data.parts[i] == NodePart::training) ++taught[static_cast<std::size_t>(data.labels[i])];
  }
  const auto empty = std::find(taught.begin(), taught.end(), 0);
  if (empty != taught.end()) fail("{} has no node of class {} to train on", name, empty - taught.begin());
  for (const NodePart part : {NodePart::validation, NodePart::test}) {
    if (std::find(data.parts.begin(), data.parts.end(), part) == data.parts.end())
      fail("{} has no nodes in its {} part", name, part == NodePart::test ? "test" : "validation");
  }
}

}  // namespace

GraphSource::GraphSource(std::string name, GraphData data) : name_(std::move(name)), data_(std::move(data)) {
  check_graph(name_, data_);
  std::vector<std::pair<std::int32_t, std::int32_t>> all;
  for (const auto& [a, b] : data_.edges) all.insert(all.end(), {{a, b}, {b, a}});
  for (std::int32_t node = 0; node < data_.nodes; ++node) all.emplace_back(node, node);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  degrees_.assign(static_cast<std::size_t>(data_.nodes), 0);
  for (const auto& [node, neighbour] : all) {
    edges_.push_back(node);
    ++degrees_[static_cast<std::size_t>(node)];
  }
  for (const auto& [node, neighbour] : all) edges_.push_back(neighbour);
}

std::map<std::string, std::int64_t> GraphSource::sizes() const {
  return {{"classes", data_.classes},
          {"nodes", data_.nodes},
          {"edges", static_cast<std::int64_t>(edges_.size()) / 2},
          {"features", data_.features}};
}

void GraphSource::write(NodePart part, Batch& batch) const {
  std::ranges::copy(data_.values, batch.numbers("features", {data_.nodes, data_.features}).begin());
  std::ranges::copy(edges_, batch.ids("edges", {2, static_cast<std::int64_t>(edges_.size()) / 2}).begin());
  std::ranges::copy(degrees_, batch.numbers("degrees", {data_.nodes}).begin());
  Batch::Ids& targets = batch.ids("targets", {data_.nodes});
  for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = data_.parts[i] == part ? data_.labels[i] : kIgnored;
}

void GraphSource::fill(std::uint64_t, std::uint64_t, Batch& batch) const { write(NodePart::training, batch); }

void GraphSource::fill_evaluation(std::int64_t index, Batch& batch) const {
  NORMA_ASSERT(index == 0 || index == 1);
  write(index == 0 ? NodePart::validation : NodePart::test, batch);
}

}  // namespace norma
