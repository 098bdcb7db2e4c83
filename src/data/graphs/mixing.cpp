#include "data/graphs/mixing.h"

#include <algorithm>
#include <cmath>

#include "data/settings.h"
#include "norma/core/error.h"

namespace norma {
namespace {

struct MixingSettings {
  std::int64_t graphs, nodes, colours;
  double degree, inside;

  explicit MixingSettings(const DataConfig& config)
      : graphs(whole_setting(config, "graphs", 1000, 10, 100000)),
        nodes(whole_setting(config, "nodes", 20, 4, 1000)),
        colours(whole_setting(config, "colours", 3, 2, 64)),
        degree(number_setting(config, "degree", 4, 0.1, 1000)),
        inside(number_setting(config, "inside", 1.5, 1, 1e6)) {
    if (largest_chance(nodes / 2) > 1)
      fail("data.settings.degree is {}; graphs of {} nodes cannot have so many neighbours", degree, nodes / 2);
  }
  // That two nodes of one colour are joined in a graph of this class, or two of different ones. A pair is of one colour
  // with the chance 1 / colours.
  double chance(std::int64_t class_, bool one_colour, std::int64_t count) const {
    const double same = 1 / static_cast<double>(colours), favoured = class_ == 0 ? same : 1 - same;
    const double p = degree / static_cast<double>(count - 1) / (favoured * inside + 1 - favoured);
    return (class_ == 0) == one_colour ? inside * p : p;
  }
  double largest_chance(std::int64_t count) const { return std::max(chance(0, true, count), chance(1, false, count)); }
};

struct Drawn {
  SmallGraph graph;
  double chance_of_0 = 0;  // given colours and edges
};

Drawn draw_graph_of(const MixingSettings& s, std::uint32_t number) {
  Draws draws(0, hash_name("data.mixing"), 0, number);
  Drawn drawn;
  SmallGraph& graph = drawn.graph;
  graph.label = static_cast<std::int32_t>(number % 2);
  graph.nodes = s.nodes / 2 + draws.below(static_cast<std::uint32_t>(s.nodes + 1));
  graph.values.assign(static_cast<std::size_t>(graph.nodes * s.colours), 0);
  std::vector<std::uint32_t> colour;
  double odds = 0;  // log of those of class 0
  for (std::int32_t a = 0; a < graph.nodes; ++a) {
    colour.push_back(draws.below(static_cast<std::uint32_t>(s.colours)));
    graph.values[static_cast<std::size_t>(a * s.colours) + colour.back()] = 1;
    for (std::int32_t b = 0; b < a; ++b) {
      const bool same = colour[static_cast<std::size_t>(b)] == colour.back();
      const double p0 = s.chance(0, same, graph.nodes), p1 = s.chance(1, same, graph.nodes);
      const bool joined = draws.unit() < (graph.label == 0 ? p0 : p1);
      if (joined) graph.edges.emplace_back(a, b);
      odds += joined ? std::log(p0 / p1) : std::log((1 - p0) / (1 - p1));
    }
  }
  drawn.chance_of_0 = 1 / (1 + std::exp(-odds));
  return drawn;
}

// The last fifth is held out; classes take turns, so both parts have them in equal numbers.
GraphsData draw_graphs(const DataConfig& config) {
  const MixingSettings settings(config);
  GraphsData data{.features = settings.colours, .classes = 2};
  for (std::int64_t i = 0; i < settings.graphs; ++i) {
    auto& part = i < settings.graphs * 4 / 5 ? data.training : data.held_out;
    part.push_back(draw_graph_of(settings, static_cast<std::uint32_t>(i)).graph);
  }
  return data;
}

}  // namespace

Mixing::Mixing(const DataConfig& config, const BatchShape& shape)
    : GraphsSource("the mixing task", draw_graphs(config), config, shape) {
  const MixingSettings settings(config);
  const auto first = static_cast<std::int64_t>(data().training.size());
  for (std::int64_t i = first; i < settings.graphs; ++i) {
    const double p = draw_graph_of(settings, static_cast<std::uint32_t>(i)).chance_of_0;
    accuracy_ += std::max(p, 1 - p) / static_cast<double>(settings.graphs - first);
    for (const double chance : {p, 1 - p})
      loss_ -= chance > 0 ? chance * std::log(chance) / static_cast<double>(settings.graphs - first) : 0;
  }
}

std::string Mixing::describe() const {
  return fmt::format("mixing: {}; best accuracy {:.4f}, loss {:.4f}", describe_graphs(), accuracy_, loss_);
}

}  // namespace norma
