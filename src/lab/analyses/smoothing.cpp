#include "norma/lab/smoothing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "norma/core/error.h"
#include "norma/core/random.h"
#include "norma/ops/elementwise.h"

namespace norma {
namespace {

// The normalised adjacency of what a batch holds, each node its own neighbour.
class NodeGraph {
 public:
  explicit NodeGraph(const Batch& batch) {
    const Batch::Ids& edges = batch.ids("edges");
    const std::size_t count = edges.size() / 2, nodes = batch.numbers("degrees").size();
    roots_.assign(nodes, 0);
    for (std::size_t i = 0; i < count && edges[i] < static_cast<std::int32_t>(nodes); ++i) {
      pairs_.emplace_back(edges[i], edges[count + i]);
      ++roots_[pairs_.back().first];
    }
    for (double& root : roots_) root = std::sqrt(root);
    find_parts();
  }

  bool there(std::size_t node) const { return roots_[node] > 0; }
  std::size_t nodes() const { return roots_.size(); }

  std::vector<double> times(const std::vector<double>& x) const {  // A x of [nodes, width]
    const std::size_t width = x.size() / nodes();
    std::vector<double> y(x.size(), 0);
    for (const auto& [i, j] : pairs_) {
      const double by = 1 / (roots_[i] * roots_[j]);
      for (std::size_t c = 0; c < width; ++c) y[i * width + c] += by * x[j * width + c];
    }
    return y;
  }

  // |x|^2 of nodes that are there.
  double square(const std::vector<double>& x) const {
    const std::size_t width = x.size() / nodes();
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += there(i / width) ? x[i] * x[i] : 0;
    return sum;
  }
  // Over edges, each once; a node and itself do not differ.
  double energy(const std::vector<double>& x) const {
    const std::size_t width = x.size() / nodes();
    double sum = 0;
    for (const auto& [i, j] : pairs_) {
      if (i >= j) continue;
      for (std::size_t c = 0; c < width; ++c) {
        const double apart = x[i * width + c] / roots_[i] - x[j * width + c] / roots_[j];
        sum += apart * apart;
      }
    }
    return sum;
  }

  double mean_distance(const std::vector<double>& x) const {
    const std::size_t width = x.size() / nodes();
    std::vector<double> sum(width, 0);
    double counted = 0;
    for (std::size_t i = 0; i < nodes(); ++i) {
      double length = 0;
      for (std::size_t c = 0; c < width; ++c) length += x[i * width + c] * x[i * width + c];
      if (!there(i) || length == 0) continue;
      ++counted;
      for (std::size_t c = 0; c < width; ++c) sum[c] += x[i * width + c] / std::sqrt(length);
    }
    if (counted < 2) return 0;
    // The cosines of all pairs together are the square of the sum of units, less those of nodes with themselves.
    const double together = std::inner_product(sum.begin(), sum.end(), sum.begin(), 0.0);
    return 1 - (together - counted) / (counted * (counted - 1));
  }

  // By powers of A^2 on what is at right angles to the first eigenvectors: the roots of degrees, of each part.
  double second_eigenvalue() const {
    std::vector<double> x;
    const RandomStream stream(1, "lab.smoothing");
    for (std::size_t i = 0; i < nodes(); ++i) x.push_back(there(i) ? stream.normal(i) : 0);
    double squared = 0;
    for (int step = 0; step < 300; ++step) {
      remove_first(x);
      const double norm = std::sqrt(square(x));
      if (norm == 0) return 0;
      for (double& v : x) v /= norm;
      const std::vector<double> once = times(x);
      squared = square(once);
      x = times(once);
    }
    return std::sqrt(squared);
  }

 private:
  // Parts without edges between them, each by its lowest node.
  void find_parts() {
    part_.resize(nodes());
    std::iota(part_.begin(), part_.end(), std::size_t{0});
    for (bool moved = true; moved;) {
      moved = false;
      for (const auto& [i, j] : pairs_) {
        if (part_[j] >= part_[i]) continue;
        part_[i] = part_[j];
        moved = true;
      }
    }
  }

  void remove_first(std::vector<double>& x) const {
    std::vector<double> along(nodes(), 0), length(nodes(), 0);
    for (std::size_t i = 0; i < nodes(); ++i) {
      along[part_[i]] += x[i] * roots_[i];
      length[part_[i]] += roots_[i] * roots_[i];
    }
    for (std::size_t i = 0; i < nodes(); ++i) {
      if (there(i)) x[i] -= along[part_[i]] / length[part_[i]] * roots_[i];
    }
  }

  std::vector<std::pair<std::size_t, std::size_t>> pairs_;
  std::vector<double> roots_;  // of degrees; 0: the node is not there
  std::vector<std::size_t> part_;
};

// Of x <- f(x) or x + f(x): the weight of A^2j in the expected moments after so many layers. Independent weights of
// variance 1 / width keep lengths, and cross terms vanish.
enum class Linear { none, plain, residual };

Linear linear_form(const ModelConfig& model) {
  if (model.convolution != GraphConvolution::gcn) return Linear::none;
  const Formula* const formula = model.scheme->formula("sublayer");
  if (formula == nullptr || !model.scheme->streams.empty()) return Linear::none;
  const std::string text = print_formula(*formula);
  return text == "f(x)" ? Linear::plain : text == "x + f(x)" ? Linear::residual : Linear::none;
}

std::vector<double> expected_energies(const NodeGraph& graph, std::vector<double> x, std::size_t layers, Linear form) {
  std::vector<double> energy, square;
  for (std::size_t power = 0; power <= layers; ++power) {
    energy.push_back(graph.energy(x));
    square.push_back(graph.square(x));
    x = graph.times(x);
  }
  std::vector<double> found;
  for (std::size_t layer = 0; layer <= layers; ++layer) {
    if (form == Linear::plain) {
      found.push_back(energy[layer] / square[layer]);
      continue;
    }
    double of_energy = 0, of_square = 0, ways = 1;  // binomial coefficients
    for (std::size_t power = 0; power <= layer; ++power) {
      of_energy += ways * energy[power];
      of_square += ways * square[power];
      ways *= static_cast<double>(layer - power) / static_cast<double>(power + 1);
    }
    found.push_back(of_energy / of_square);
  }
  return found;
}

}  // namespace

bool reads_graph(const ModelConfig& model) {
  return std::ranges::any_of(model.family->inputs(model), [](const InputSpec& input) { return input.name == "edges"; });
}

NodeDifferences node_differences(const Batch& batch, std::span<const double> x) {
  const NodeGraph graph(batch);
  const std::vector<double> values(x.begin(), x.end());
  return {graph.energy(values) / graph.square(values), graph.mean_distance(values), graph.second_eigenvalue()};
}

Smoothing measure_smoothing(const Subject& subject) {
  Smoothing found;
  found.sites.emplace_back("embedding");
  const auto trace = [&](Graph& graph, const Model& model) {
    graph.output("embedding", model.sites.front().stream_in * 1.0);
    for (const SublayerSite& site : model.sites) {
      found.sites.push_back(site.name);
      graph.output("stream/" + site.name, site.stream_out * 1.0);
    }
  };
  Rig rig(subject, trace, {.wide = true});
  // Held-out batches have all edges.
  rig.load_evaluation_batch(0);
  rig.run();
  Batch batch;
  subject.source->fill_evaluation(0, batch);
  const NodeGraph graph(batch);
  found.second_eigenvalue = graph.second_eigenvalue();
  const Linear form = linear_form(subject.model);
  const std::size_t sites = found.sites.size();
  found.energy.resize(sites);
  found.distance.resize(sites);
  if (form != Linear::none) found.linear_energy.resize(sites);
  for (int member = 0; member < rig.members(); ++member) {
    for (std::size_t site = 0; site < sites; ++site) {
      const std::vector<double> x = rig.values(site == 0 ? "embedding" : "stream/" + found.sites[site], member);
      found.energy[site].push_back(graph.energy(x) / graph.square(x));
      found.distance[site].push_back(graph.mean_distance(x));
      if (site > 0 || form == Linear::none) continue;
      const std::vector<double> expected = expected_energies(graph, x, sites - 1, form);
      for (std::size_t at = 0; at < sites; ++at) found.linear_energy[at].push_back(expected[at]);
    }
  }
  return found;
}

}  // namespace norma
