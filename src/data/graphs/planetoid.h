// Classification of the nodes of a graph from two tables: nodes with label, part and features, and edges.
//
// data.path: a line of titles, then "node label part features", tabs between; nodes count from 0 in order, the part is
// train, val, test or none, features are the numbers of those that are 1. data.target_path: lines of two nodes.
// Features of a node are divided by their number, as is usual for Cora and Citeseer (Kipf and Welling 2017). The task
// edge_list has the same tables with features that are numbers, brought to mean 0 and variance 1 by training nodes.
#pragma once

#include "data/graphs/graph_source.h"

namespace norma {

class Planetoid final : public GraphSource {
 public:
  Planetoid(const DataConfig& config, const BatchShape& shape);

  std::optional<double> optimum() const override { return std::nullopt; }
  std::string describe() const override;

 private:
  std::string task_;
};

}  // namespace norma
