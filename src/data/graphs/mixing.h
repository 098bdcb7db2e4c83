// Graphs that either join nodes of one colour or nodes of different ones: a task whose best score is known.
//
// A graph has from half of `nodes` to half as many more, each of one of `colours` by chance, which are its features.
// Two nodes are joined with the chance p, and with `inside` times p where they are of one colour (class 0) or of two
// (class 1); p is such that a node has `degree` neighbours in the mean, whatever the class. Edges being independent
// given the colours, the chances of both classes given a graph are exact, and the mean largest one of all graphs that
// are held out is the best accuracy. A mean over neighbours and a sum over nodes can tell all that there is to know.
#pragma once

#include "data/graphs/graphs_source.h"

namespace norma {

class Mixing final : public GraphsSource {
 public:
  Mixing(const DataConfig& config, const BatchShape& shape);

  std::optional<double> optimum() const override { return loss_; }
  std::optional<double> best_accuracy() const override { return accuracy_; }
  std::string describe() const override;

 private:
  double accuracy_ = 0, loss_ = 0;
};

}  // namespace norma
