#include "data/graphs/planetoid.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>

#include "norma/core/error.h"
#include "norma/core/mapped_file.h"

namespace norma {
namespace {

using NodePart = GraphData::Part;

constexpr std::int64_t kMostNodes = 10'000'000, kMostFeatures = 100'000;
constexpr std::int64_t kMostValues = std::int64_t{1} << 31;  // keeps a slip from filling memory

// Lines and their words, with the place for errors.
class TableReader {
 public:
  TableReader(const MappedFile& file) : path_(file.path()), rest_(file.text()) {}

  bool next() {
    if (rest_.empty()) return false;
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    line_ = rest_.substr(0, end);
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++number_;
    return true;
  }
  bool blank() const { return line_.empty(); }

  std::string_view word() {
    line_.remove_prefix(std::min(line_.find_first_not_of(" \t"), line_.size()));
    const std::size_t end = std::min(line_.find_first_of(" \t"), line_.size());
    const std::string_view found = line_.substr(0, end);
    line_.remove_prefix(end);
    return found;
  }

  std::int64_t whole(const char* what, std::int64_t most) { return whole_of(word(), what, most); }
  std::int64_t whole_of(std::string_view text, const char* what, std::int64_t most) const {
    std::int64_t value = -1;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc() || end != text.data() + text.size() || value < 0 || value > most)
      fail("'{}', line {}: {} is '{}'; expected a whole number from 0 to {}", path_, number_, what, text, most);
    return value;
  }
  template <typename... Arguments>
  [[noreturn]] void wrong(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    fail("'{}', line {}: {}", path_, number_, fmt::format(format, std::forward<Arguments>(arguments)...));
  }

 private:
  std::string path_;
  std::string_view rest_, line_;
  std::int64_t number_ = 0;
};

NodePart part_called(const TableReader& table, std::string_view name) {
  static const std::map<std::string_view, NodePart> parts = {
      {"train", NodePart::training}, {"val", NodePart::validation}, {"test", NodePart::test}, {"none", NodePart::none}};
  const auto found = parts.find(name);
  if (found == parts.end()) table.wrong("the part is '{}'; expected train, val, test or none", name);
  return found->second;
}

void read_nodes(const std::string& path, GraphData& data) {
  const MappedFile file(path, "nodes of a graph");
  TableReader table(file);
  table.next();
  if (!table.word().starts_with("node")) table.wrong("expected titles: node, label, split, features");
  std::vector<std::vector<std::int64_t>> present;
  while (table.next()) {
    if (table.blank()) continue;
    if (const std::int64_t node = table.whole("the node", kMostNodes); node != data.nodes)
      table.wrong("this is node {}; expected {}: they come in order", node, data.nodes);
    ++data.nodes;
    data.labels.push_back(static_cast<std::int32_t>(table.whole("the label", 100'000)));
    data.classes = std::max<std::int64_t>(data.classes, data.labels.back() + 1);
    data.parts.push_back(part_called(table, table.word()));
    present.emplace_back();
    for (std::string_view word = table.word(); !word.empty(); word = table.word()) {
      present.back().push_back(table.whole_of(word, "a feature", kMostFeatures));
      data.features = std::max(data.features, present.back().back() + 1);
    }
  }
  if (data.nodes == 0 || data.features == 0) fail("'{}' has {} nodes and {} features", path, data.nodes, data.features);
  if (data.nodes > kMostValues / data.features)
    fail("'{}' has {} nodes of {} features; expected at most {} numbers", path, data.nodes, data.features, kMostValues);
  data.values.assign(static_cast<std::size_t>(data.nodes * data.features), 0);
  for (std::size_t node = 0; node < present.size(); ++node) {
    for (const std::int64_t feature : present[node])
      data.values[node * static_cast<std::size_t>(data.features) + static_cast<std::size_t>(feature)] =
          1 / static_cast<float>(present[node].size());
  }
}

void read_edges(const std::string& path, GraphData& data) {
  const MappedFile file(path, "edges of a graph");
  TableReader table(file);
  while (table.next()) {
    if (table.blank()) continue;
    const std::int64_t a = table.whole("a node", kMostNodes), b = table.whole("a node", kMostNodes);
    if (!table.word().empty()) table.wrong("expected two nodes");
    if (std::max(a, b) >= data.nodes)
      table.wrong("an edge between {} and {}, but nodes are 0 to {}", a, b, data.nodes - 1);
    data.edges.emplace_back(static_cast<std::int32_t>(a), static_cast<std::int32_t>(b));
  }
}

GraphData read_graph(const DataConfig& config) {
  if (config.target_path.empty())
    fail("data.target_path is not given; expected the edges of the graph whose nodes are in '{}'", config.path);
  GraphData data;
  read_nodes(config.path, data);
  read_edges(config.target_path, data);
  return data;
}

}  // namespace

Planetoid::Planetoid(const DataConfig& config, const BatchShape&)
    : GraphSource(fmt::format("'{}'", config.path), read_graph(config)) {}

std::string Planetoid::describe() const {
  const auto taught = std::count(data().parts.begin(), data().parts.end(), NodePart::training);
  return fmt::format("planetoid: {} nodes in {} classes, {} of them taught, {} edges, {} features ({})", data().nodes,
                     data().classes, taught, data().edges.size(), data().features, name());
}

}  // namespace norma
