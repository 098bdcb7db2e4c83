// Over-smoothing: whether the nodes of a graph still differ, sublayer by sublayer.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "norma/data/batch.h"
#include "norma/lab/activations.h"
#include "norma/lab/subject.h"

namespace norma {

struct Smoothing {
  std::vector<std::string> sites;  // "embedding", then "layers.0.gcn" ...
  // Sum over edges of |x[i] / sqrt(d[i]) - x[j] / sqrt(d[j])|^2 over |x|^2: the Rayleigh quotient of the normalised
  // Laplacian, 0 where nodes differ by the roots of their degrees alone (Cai and Wang 2020, arXiv 2006.13318).
  SiteValues energy;
  SiteValues distance;  // mean over pairs of nodes of 1 - cos(x[i], x[j]) (MAD, Chen et al. 2020, arXiv 1909.03211)
  // Of a formula that is linear, f(x) or x + f(x), with graph convolutions: the same energy expected of independent
  // weights, from how the embedding lies in the graph. Empty: none.
  SiteValues linear_energy;
  // Of the normalised adjacency, the largest by size below the 1 that every connected part has: what a linear layer
  // leaves of the differences within a part, at most.
  double second_eigenvalue = 0;
};

// Energy and distance of x[nodes, width] on the graph of a batch, and that graph's second eigenvalue, as above.
struct NodeDifferences {
  double energy = 0, distance = 0, second_eigenvalue = 0;
};
NodeDifferences node_differences(const Batch& batch, std::span<const double> x);

// Whether a model reads a graph.
bool reads_graph(const ModelConfig& model);
Smoothing measure_smoothing(const Subject& subject);

}  // namespace norma
