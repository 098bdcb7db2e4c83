// A graph whose nodes are to be classified: all of it is read at once, and targets are those of one part of the nodes.
#pragma once

#include <utility>
#include <vector>

#include "norma/data/source.h"

namespace norma {

struct GraphData {
  enum class Part : std::uint8_t { training, validation, test, none };

  std::int64_t nodes = 0, features = 0, classes = 0;
  std::vector<float> values = {};                                 // [nodes, features]
  std::vector<std::int32_t> labels = {};                          // of each node
  std::vector<Part> parts = {};                                   // of each node
  std::vector<std::pair<std::int32_t, std::int32_t>> edges = {};  // in any order, once or twice
};

// Both directions of every edge and each node with itself, sorted, each pair once.
std::vector<std::pair<std::int32_t, std::int32_t>> neighbour_pairs(
    std::int64_t nodes, const std::vector<std::pair<std::int32_t, std::int32_t>>& edges);

// "features" [nodes, features], "edges" i32[2, edges] in both directions, each node with itself among them, sorted;
// "degrees" [nodes]; "targets" i32[nodes]. There are two held-out batches: the validation part, then the test part.
//
// With data.settings.drop_edge training batches lack that share of the edges (DropEdge, Rong et al. 2020, arXiv
// 1907.10903), degrees counted without them; which ones is a function of seed and batch. Pairs of two nodes behind the
// last fill their places.
class GraphSource : public Source {
 public:
  void fill(std::uint64_t index, std::uint64_t seed, Batch& batch) const final;
  std::int64_t evaluation_batches() const final { return 2; }
  void fill_evaluation(std::int64_t index, Batch& batch) const final;
  std::int64_t vocabulary() const final { return 0; }
  std::int64_t classes() const final { return data_.classes; }
  std::map<std::string, std::int64_t> sizes() const final;

 protected:
  // Throws Error for an edge to a node that is not there, a graph without edges, and classes or parts without nodes.
  GraphSource(std::string name, GraphData data, const DataConfig& config);

  const std::string& name() const { return name_; }
  const GraphData& data() const { return data_; }
  std::string describe_edges() const;  // how many, and what was wrong with those that were given

 private:
  void write(GraphData::Part part, Batch& batch) const;
  void drop_edges(std::uint64_t index, std::uint64_t seed, Batch& batch) const;

  std::string name_;
  GraphData data_;
  double drop_;
  std::vector<std::int32_t> edges_;      // [2, edges]
  std::vector<std::int32_t> both_ways_;  // the edge that each pair is a direction of; -1: a node with itself
  std::int64_t single_ = 0, loops_ = 0, repeated_ = 0;  // edges between two nodes; and what was given beside them
  std::vector<float> degrees_;
  // One graph for all batches: a reader need not take it twice.
  std::uint64_t features_content_ = new_content(), edges_content_ = new_content(), degrees_content_ = new_content();
};

}  // namespace norma
