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

// "features" [nodes, features], "edges" i32[2, edges] in both directions, each node with itself among them, sorted;
// "degrees" [nodes]; "targets" i32[nodes]. There are two held-out batches: the validation part, then the test part.
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
  GraphSource(std::string name, GraphData data);

  const std::string& name() const { return name_; }
  const GraphData& data() const { return data_; }

 private:
  void write(GraphData::Part part, Batch& batch) const;

  std::string name_;
  GraphData data_;
  std::vector<std::int32_t> edges_;  // [2, edges]
  std::vector<float> degrees_;
};

}  // namespace norma
