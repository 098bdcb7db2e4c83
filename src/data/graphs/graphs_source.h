// Small graphs, each of a class: a batch is one graph of several parts without edges between them.
#pragma once

#include <utility>
#include <vector>

#include "norma/data/source.h"

namespace norma {

struct SmallGraph {
  std::int64_t nodes = 0;
  std::int32_t label = 0;
  std::vector<float> values = {};                                 // [nodes, features]
  std::vector<std::pair<std::int32_t, std::int32_t>> edges = {};  // in any order, once or twice
};

struct GraphsData {
  std::int64_t features = 0, classes = 0;
  std::vector<SmallGraph> training = {}, held_out = {};
};

// "features" [nodes, features], "edges" i32[2, edges] in both directions, each node with itself among them, sorted;
// "degrees" [nodes], "graph_of" i32[nodes]: of which graph a node is; "targets" i32[graphs]. There are as many nodes
// and edges as the largest graphs together can have: those that are not there are of graph `graphs`, pairs of two nodes
// behind the last. Every training graph comes once an epoch, in an order keyed by seed and epoch; a last batch that
// would not be full is left out. data.settings.drop_edge is that of GraphSource.
class GraphsSource : public Source {
 public:
  void fill(std::uint64_t index, std::uint64_t seed, Batch& batch) const final;
  std::int64_t evaluation_batches() const final;
  void fill_evaluation(std::int64_t index, Batch& batch) const final;
  std::int64_t vocabulary() const final { return 0; }
  std::int64_t classes() const final { return data_.classes; }
  std::int64_t held_out_records() const final { return std::ssize(data_.held_out); }
  std::map<std::string, std::int64_t> sizes() const final;

 protected:
  // Throws Error for an edge to a node that is not there, a class without graphs to train on, and fewer graphs than a
  // batch has.
  GraphsSource(std::string name, GraphsData data, const DataConfig& config, const BatchShape& shape);

  const std::string& name() const { return name_; }
  const GraphsData& data() const { return data_; }
  std::string describe_graphs() const;

 private:
  struct Neighbours {
    std::vector<std::pair<std::int32_t, std::int32_t>> pairs;  // sorted, in both directions, each node with itself
    std::vector<std::int32_t> edge;                            // of each pair; -1: a node with itself
    std::int64_t edges = 0;
  };

  static std::vector<Neighbours> neighbours_of(const std::string& name, const std::vector<SmallGraph>& graphs);
  void begin(Batch& batch) const;
  // Graph number `row` of a batch, behind `nodes` and `pairs` that are there already; moves both on.
  void add(const SmallGraph& graph, const Neighbours& neighbours, const std::vector<char>& kept, std::int64_t row,
           std::int64_t& nodes, std::int64_t& pairs, Batch& batch) const;

  std::string name_;
  GraphsData data_;
  std::int64_t batch_, most_evaluations_;
  double drop_;
  std::vector<Neighbours> training_, held_out_;
  std::int64_t nodes_ = 0, pairs_ = 0;  // of a batch
};

}  // namespace norma
