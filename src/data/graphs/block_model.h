// Stochastic block model with features: a graph whose best accuracy is known.
//
// Nodes are of `classes` equal classes. Two of one class are joined with the chance `inside` times that of others, so
// that a node has `degree` neighbours in the mean; a node's features are a direction of its class, `signal` long, plus
// standard normals. The best guess of a label from everything that a model sees (features, edges, labels of training
// nodes) is found by belief propagation, which is exact on trees and, in sparse graphs, where cycles are long, nearly
// so (Decelle et al. 2011, arXiv 1109.3041). The mean largest belief of held-out nodes is the best accuracy.
#pragma once

#include <mutex>

#include "data/graphs/graph_source.h"

namespace norma {

class BlockModel final : public GraphSource {
 public:
  BlockModel(const DataConfig& config, const BatchShape& shape);

  std::optional<double> optimum() const override { return best().loss; }
  std::optional<double> best_accuracy() const override { return best().accuracy; }
  std::string describe() const override;

 private:
  struct Best {
    double accuracy = 0, loss = 0;
  };
  const Best& best() const;  // found when it is first asked for

  double same_, others_, signal_;
  mutable std::once_flag known_;
  mutable Best best_;
};

}  // namespace norma
