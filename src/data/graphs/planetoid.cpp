#include "data/graphs/planetoid.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "data/graphs/table_reader.h"
#include "norma/core/error.h"

namespace norma {
namespace {

using NodePart = GraphData::Part;

constexpr std::int64_t kMostFeatures = 100'000;

NodePart part_called(const TableReader& table, std::string_view name) {
  static const std::map<std::string_view, NodePart> parts = {
      {"train", NodePart::training}, {"val", NodePart::validation}, {"test", NodePart::test}, {"none", NodePart::none}};
  const auto found = parts.find(name);
  if (found == parts.end()) table.wrong("the part is '{}'; expected train, val, test or none", name);
  return found->second;
}

// node, label and part, which begin every line of both kinds of tables; then come features.
class NodeTable {
 public:
  NodeTable(const std::string& path, GraphData& data) : table_(path, "nodes of a graph"), data_(data) {
    table_.next();
    if (!table_.word().starts_with("node")) table_.wrong("expected titles: node, label, split, features");
  }

  // False behind the last line. Leaves the table before the first feature.
  bool next() {
    do {
      if (!table_.next()) return false;
    } while (table_.blank());
    if (const std::int64_t node = table_.whole("the node", TableReader::kMostNodes); node != data_.nodes)
      table_.wrong("this is node {}; expected {}: they come in order", node, data_.nodes);
    ++data_.nodes;
    data_.labels.push_back(static_cast<std::int32_t>(table_.whole("the label", 100'000)));
    data_.classes = std::max<std::int64_t>(data_.classes, data_.labels.back() + 1);
    data_.parts.push_back(part_called(table_, table_.word()));
    return true;
  }
  TableReader& table() { return table_; }

  void check(const std::string& path) const {
    if (data_.nodes == 0 || data_.features == 0)
      fail("'{}' has {} nodes and {} features; expected some of each", path, data_.nodes, data_.features);
    if (data_.nodes > TableReader::kMostValues / data_.features)
      fail("'{}' has {} nodes of {} features; expected at most {} numbers", path, data_.nodes, data_.features,
           TableReader::kMostValues);
  }

 private:
  TableReader table_;
  GraphData& data_;
};

void read_present_features(const std::string& path, GraphData& data) {
  NodeTable nodes(path, data);
  std::vector<std::vector<std::int64_t>> present;
  while (nodes.next()) {
    TableReader& table = nodes.table();
    present.emplace_back();
    for (std::string_view word = table.word(); !word.empty(); word = table.word()) {
      present.back().push_back(table.whole_of(word, "a feature", kMostFeatures));
      data.features = std::max(data.features, present.back().back() + 1);
    }
  }
  nodes.check(path);
  data.values.assign(static_cast<std::size_t>(data.nodes * data.features), 0);
  for (std::size_t node = 0; node < present.size(); ++node) {
    for (const std::int64_t feature : present[node])
      data.values[node * static_cast<std::size_t>(data.features) + static_cast<std::size_t>(feature)] =
          1 / static_cast<float>(present[node].size());
  }
}

void read_numbers(const std::string& path, GraphData& data) {
  NodeTable nodes(path, data);
  while (nodes.next()) {
    TableReader& table = nodes.table();
    const std::size_t before = data.values.size();
    for (std::string_view word = table.word(); !word.empty(); word = table.word())
      data.values.push_back(table.number_of(word, "a feature"));
    const auto count = static_cast<std::int64_t>(data.values.size() - before);
    if (data.nodes == 1) data.features = count;
    if (count != data.features) table.wrong("{} features; the first node has {}", count, data.features);
    if (std::ssize(data.values) > TableReader::kMostValues)
      table.wrong("more than {} numbers", TableReader::kMostValues);
  }
  nodes.check(path);
}

// Every feature minus its mean over its deviation, both of the nodes to train on alone. One that is constant there
// stays at 0.
void standardise(GraphData& data) {
  const auto features = static_cast<std::size_t>(data.features);
  const auto taught = static_cast<double>(std::ranges::count(data.parts, NodePart::training));
  for (std::size_t f = 0; f < features; ++f) {
    double mean = 0, squares = 0;
    const auto over_taught = [&](const auto& add) {
      for (std::size_t node = 0; node < data.parts.size(); ++node) {
        if (data.parts[node] == NodePart::training) add(data.values[node * features + f]);
      }
    };
    over_taught([&](double v) { mean += v; });
    mean /= std::max(1.0, taught);  // at once, or rounding would leave something of a constant
    over_taught([&](double v) { squares += (v - mean) * (v - mean) / taught; });
    const double scale = squares > 0 ? 1 / std::sqrt(squares) : 0;
    for (std::size_t node = 0; node < data.parts.size(); ++node) {
      float& value = data.values[node * features + f];
      value = static_cast<float>((value - mean) * scale);
    }
  }
}

void read_edges(const std::string& path, GraphData& data) {
  TableReader table(path, "edges of a graph");
  while (table.next()) {
    if (table.blank()) continue;
    const std::int64_t a = table.whole("a node", TableReader::kMostNodes),
                       b = table.whole("a node", TableReader::kMostNodes);
    table.expect_end("two nodes");
    if (std::max(a, b) >= data.nodes)
      table.wrong("an edge between {} and {}, but nodes are 0 to {}", a, b, data.nodes - 1);
    data.edges.emplace_back(static_cast<std::int32_t>(a), static_cast<std::int32_t>(b));
  }
}

GraphData read_graph(const DataConfig& config) {
  if (config.target_path.empty())
    fail("data.target_path is not given; expected the edges of the graph whose nodes are in '{}'", config.path);
  GraphData data;
  if (config.task == "edge_list") {
    read_numbers(config.path, data);
    standardise(data);
  } else {
    read_present_features(config.path, data);
  }
  read_edges(config.target_path, data);
  return data;
}

}  // namespace

Planetoid::Planetoid(const DataConfig& config, const BatchShape&)
    : GraphSource(fmt::format("'{}'", config.path), read_graph(config), config), task_(config.task) {}

std::string Planetoid::describe() const {
  const auto taught = std::count(data().parts.begin(), data().parts.end(), NodePart::training);
  return fmt::format("{}: {} nodes in {} classes, {} of them for training, {}, {} features ({})", task_, data().nodes,
                     data().classes, taught, describe_edges(), data().features, name());
}

}  // namespace norma
