// Graphs to classify in the format of the TU datasets (Morris et al. 2020, arXiv 2007.08663): of data.path
// "somewhere/DS" (or a folder that is named as its files are) the files
//   DS_A.txt                 "a, b": an edge between two nodes, which count from 1 through all graphs
//   DS_graph_indicator.txt   of every node the number of its graph, from 1
//   DS_graph_labels.txt      of every graph its class, any whole number; classes are the distinct ones, in order
//   DS_node_labels.txt       of every node a whole number, which becomes a one among zeros; may be missing
//   DS_node_attributes.txt   of every node numbers, brought to mean 0 and variance 1 by training graphs; may be missing
// Without both of the last, features are degrees, each a one among zeros up to 32. Held out is data.validation_fraction
// of the graphs of every class, chosen by a permutation that is always the same.
#pragma once

#include "data/graphs/graphs_source.h"

namespace norma {

class TuGraphs final : public GraphsSource {
 public:
  TuGraphs(const DataConfig& config, const BatchShape& shape);

  std::optional<double> optimum() const override { return std::nullopt; }
  std::vector<std::string> labels() const override { return labels_; }
  std::string describe() const override;

 private:
  std::vector<std::string> labels_;
};

}  // namespace norma
