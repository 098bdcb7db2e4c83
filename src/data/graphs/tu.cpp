#include "data/graphs/tu.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "data/graphs/table_reader.h"
#include "data/permutation.h"
#include "data/text_file.h"
#include "norma/core/error.h"

namespace norma {
namespace {

constexpr std::string_view kBetween = ", \t";

class TuReader {
 public:
  explicit TuReader(const std::string& path) : prefix_(path) {
    namespace fs = std::filesystem;
    if (path.empty()) fail("data.path is not given; expected a folder DS with DS_A.txt, or what comes before _A.txt");
    if (fs::is_directory(path)) prefix_ = (fs::path(path) / fs::path(path).lexically_normal().filename()).string();
    if (path.ends_with("/")) prefix_ = (fs::path(path) / fs::path(path).parent_path().filename()).string();
  }

  GraphsData read(double held_out) {
    read_graphs();
    read_edges();
    read_node_labels();
    read_attributes();
    if (features_ == 0) take_degrees();
    return divided(held_out);
  }
  // Of the classes, in order.
  std::vector<std::string> class_names() {
    read_classes();
    std::vector<std::string> names;
    for (const auto& [label, number] : classes_) names.push_back(std::to_string(label));
    return names;
  }

 private:
  std::string file(const char* ending) const { return prefix_ + "_" + ending + ".txt"; }
  bool has(const char* ending) const { return std::filesystem::exists(file(ending)); }

  // each(table) for every line that is not blank.
  template <typename Each>
  void lines(const char* ending, std::string_view what, const Each& each) const {
    TableReader table(file(ending), what, kBetween);
    while (table.next()) {
      if (!table.blank()) each(table);
    }
  }
  // As many lines as there are nodes.
  template <typename Each>
  void node_lines(const char* ending, std::string_view what, const Each& each) {
    std::size_t node = 0;
    lines(ending, what, [&](TableReader& table) {
      if (node == graph_of_.size()) table.wrong("more lines than the {} nodes", graph_of_.size());
      each(table, node++);
    });
    if (node != graph_of_.size())
      fail("'{}' has {} lines; expected one for each of the {} nodes", file(ending), node, graph_of_.size());
  }

  void read_classes() {
    std::vector<std::int64_t> given;
    lines("graph_labels", "classes of graphs", [&](TableReader& table) {
      given.push_back(table.whole("the class", 1'000'000'000, -1'000'000'000));
      table.expect_end("one class");
      classes_[given.back()] = 0;
    });
    if (given.empty()) fail("'{}' has no graphs", file("graph_labels"));
    if (classes_.size() < 2)
      fail("'{}': all graphs are of class {}; expected two classes", file("graph_labels"), given[0]);
    std::int32_t next = 0;
    for (auto& [label, number] : classes_) number = next++;
    graphs_.resize(given.size());
    for (std::size_t i = 0; i < given.size(); ++i) graphs_[i].label = classes_.at(given[i]);
  }

  void read_graphs() {
    read_classes();
    lines("graph_indicator", "graphs of nodes", [&](TableReader& table) {
      const std::int64_t graph = table.whole("the graph", std::ssize(graphs_), 1) - 1;
      table.expect_end("one graph");
      graph_of_.push_back(graph);
      place_.push_back(static_cast<std::int32_t>(graphs_[static_cast<std::size_t>(graph)].nodes++));
      if (std::ssize(graph_of_) > TableReader::kMostNodes) table.wrong("more than {} nodes", TableReader::kMostNodes);
    });
    const auto empty = std::ranges::find(graphs_, std::int64_t{0}, &SmallGraph::nodes);
    if (empty != graphs_.end())
      fail("'{}': graph {} has no nodes", file("graph_indicator"), empty - graphs_.begin() + 1);
  }

  void read_edges() {
    lines("A", "edges", [&](TableReader& table) {
      const auto a = static_cast<std::size_t>(table.whole("a node", std::ssize(graph_of_), 1) - 1),
                 b = static_cast<std::size_t>(table.whole("a node", std::ssize(graph_of_), 1) - 1);
      table.expect_end("two nodes");
      if (graph_of_[a] != graph_of_[b])
        table.wrong("an edge between node {} of graph {} and node {} of graph {}", a + 1, graph_of_[a] + 1, b + 1,
                    graph_of_[b] + 1);
      graphs_[static_cast<std::size_t>(graph_of_[a])].edges.emplace_back(place_[a], place_[b]);
    });
  }

  // Columns that are added to those that there are, by node.
  void add_columns(const std::vector<std::vector<float>>& columns) {
    const std::int64_t more = std::ssize(columns.front());
    if (std::ssize(graph_of_) > TableReader::kMostValues / (features_ + more))
      fail("'{}': {} nodes of {} features; expected at most {} numbers", prefix_, graph_of_.size(), features_ + more,
           TableReader::kMostValues);
    std::vector<std::vector<float>> values(graphs_.size());
    for (std::size_t node = 0; node < graph_of_.size(); ++node) {
      const auto graph = static_cast<std::size_t>(graph_of_[node]);
      const auto& old = graphs_[graph].values;
      const std::int64_t at = place_[node] * features_;
      std::vector<float>& to = by_node_(values[graph], graphs_[graph].nodes * (features_ + more));
      std::int64_t out = place_[node] * (features_ + more);
      for (std::int64_t f = 0; f < features_; ++f)
        to[static_cast<std::size_t>(out++)] = old[static_cast<std::size_t>(at + f)];
      for (const float value : columns[node]) to[static_cast<std::size_t>(out++)] = value;
    }
    for (std::size_t graph = 0; graph < graphs_.size(); ++graph) graphs_[graph].values = std::move(values[graph]);
    features_ += more;
  }
  static std::vector<float>& by_node_(std::vector<float>& values, std::int64_t size) {
    values.resize(static_cast<std::size_t>(size));
    return values;
  }

  void add_one_hot(const std::vector<std::int64_t>& which, std::int64_t classes) {
    std::vector<std::vector<float>> columns(which.size(), std::vector<float>(static_cast<std::size_t>(classes), 0));
    for (std::size_t node = 0; node < which.size(); ++node) columns[node][static_cast<std::size_t>(which[node])] = 1;
    add_columns(columns);
  }

  void read_node_labels() {
    if (!has("node_labels")) return;
    std::vector<std::int64_t> given;
    std::map<std::int64_t, std::int64_t> known;
    node_lines("node_labels", "labels of nodes", [&](TableReader& table, std::size_t) {
      given.push_back(table.whole("the label", 1'000'000'000, -1'000'000'000));
      known[given.back()] = 0;
    });
    if (known.size() > 10000) fail("'{}' has {} labels; expected at most 10000", file("node_labels"), known.size());
    std::int64_t next = 0;
    for (auto& [label, number] : known) number = next++;
    for (std::int64_t& label : given) label = known.at(label);
    add_one_hot(given, next);
  }

  void read_attributes() {
    if (!has("node_attributes")) return;
    std::vector<std::vector<float>> columns(graph_of_.size());
    node_lines("node_attributes", "attributes of nodes", [&](TableReader& table, std::size_t node) {
      for (std::string_view word = table.word(); !word.empty(); word = table.word())
        columns[node].push_back(table.number_of(word, "an attribute"));
      if (columns[node].size() != columns[0].size())
        table.wrong("{} attributes; the first node has {}", columns[node].size(), columns[0].size());
    });
    first_attribute_ = features_;
    add_columns(columns);
  }

  void take_degrees() {
    constexpr std::int64_t kMost = 32;
    std::vector<std::vector<std::int64_t>> degrees;
    for (const SmallGraph& graph : graphs_) {
      auto& of = degrees.emplace_back(static_cast<std::size_t>(graph.nodes), 0);
      std::vector<std::pair<std::int32_t, std::int32_t>> once;
      for (const auto& [a, b] : graph.edges) once.insert(once.end(), {{a, b}, {b, a}});
      std::sort(once.begin(), once.end());
      once.erase(std::unique(once.begin(), once.end()), once.end());
      for (const auto& [a, b] : once) ++of[static_cast<std::size_t>(a)];
    }
    std::vector<std::int64_t> which;
    for (std::size_t node = 0; node < graph_of_.size(); ++node)
      which.push_back(
          std::min(kMost, degrees[static_cast<std::size_t>(graph_of_[node])][static_cast<std::size_t>(place_[node])]));
    add_one_hot(which, kMost + 1);
  }

  GraphsData divided(double held_out) {
    check_validation_fraction(held_out);
    GraphsData data{.features = features_, .classes = std::ssize(classes_)};
    for (std::int32_t label = 0; label < data.classes; ++label) {
      std::vector<std::size_t> of_class;
      for (std::size_t i = 0; i < graphs_.size(); ++i) {
        if (graphs_[i].label == label) of_class.push_back(i);
      }
      const Permutation order(of_class.size(), 0, 0);
      const auto count = static_cast<std::size_t>(std::ceil(held_out * static_cast<double>(of_class.size())));
      for (std::size_t i = 0; i < of_class.size(); ++i)
        (i < count ? data.held_out : data.training).push_back(std::move(graphs_[of_class[order(i)]]));
    }
    standardise_attributes(data);
    return data;
  }

  void standardise_attributes(GraphsData& data) const {
    for (std::int64_t f = first_attribute_; f >= 0 && f < features_; ++f) {
      double count = 0, mean = 0, squares = 0;
      const auto visit = [&](std::vector<SmallGraph>& graphs, const auto& each) {
        for (SmallGraph& graph : graphs) {
          for (std::int64_t node = 0; node < graph.nodes; ++node)
            each(graph.values[static_cast<std::size_t>(node * features_ + f)]);
        }
      };
      visit(data.training, [&](float v) { mean += v, ++count; });
      mean /= std::max(1.0, count);
      visit(data.training, [&](float v) { squares += (v - mean) * (v - mean); });
      const double scale = squares > 0 ? std::sqrt(count / squares) : 0;
      for (auto* part : {&data.training, &data.held_out})
        visit(*part, [&](float& v) { v = static_cast<float>((v - mean) * scale); });
    }
  }

  std::string prefix_;
  std::map<std::int64_t, std::int32_t> classes_;  // by label
  std::vector<SmallGraph> graphs_;
  std::vector<std::int64_t> graph_of_;  // of each node
  std::vector<std::int32_t> place_;     // of each node in its graph
  std::int64_t features_ = 0, first_attribute_ = -1;
};

}  // namespace

TuGraphs::TuGraphs(const DataConfig& config, const BatchShape& shape)
    : GraphsSource(fmt::format("'{}'", config.path), TuReader(config.path).read(config.validation_fraction), config,
                   shape),
      labels_(TuReader(config.path).class_names()) {}

std::string TuGraphs::describe() const { return fmt::format("tu: {} ({})", describe_graphs(), name()); }

}  // namespace norma
