#include "data/graphs/block_model.h"

#include <algorithm>
#include <cmath>

#include "data/graphs/beliefs.h"
#include "data/settings.h"
#include "norma/core/error.h"

namespace norma {
namespace {

using NodePart = GraphData::Part;

struct BlockSettings {
  std::int64_t nodes, classes, features, taught;
  double degree, inside, signal;

  explicit BlockSettings(const DataConfig& config)
      : nodes(whole_setting(config, "nodes", 400, 20, 100000)),
        classes(whole_setting(config, "classes", 2, 2, 16)),
        features(whole_setting(config, "features", 16, 2, 4096)),
        taught(whole_setting(config, "taught", 10, 1, 10000)),
        degree(number_setting(config, "degree", 6, 0.1, 1000)),
        inside(number_setting(config, "inside", 8, 1, 1e6)),
        signal(number_setting(config, "signal", 1, 0, 100)) {
    if (features < classes) fail("data.settings.features is {}; {} classes need {}", features, classes, classes);
    if (nodes < 4 * classes * taught)
      fail("data.settings.nodes is {}; {} taught nodes of each of {} classes need {}", nodes, taught, classes,
           4 * classes * taught);
    if (among_same() > 1) fail("data.settings.degree is {}; {} nodes cannot have so many neighbours", degree, nodes);
  }
  // Chance that two nodes of different classes, or of the same, are joined.
  double among_others() const {
    const double k = static_cast<double>(classes);
    return degree * k / (static_cast<double>(nodes) * (inside + k - 1));
  }
  double among_same() const { return inside * among_others(); }
};

GraphData draw_graph(const BlockSettings& s) {
  GraphData data{.nodes = s.nodes, .features = s.features, .classes = s.classes};
  const std::uint64_t stream = hash_name("data.block_model");
  for (std::int64_t node = 0; node < s.nodes; ++node) {
    // The first of every class are taught, then validation and test take turns.
    const std::int64_t label = node % s.classes, place = node / s.classes;
    data.labels.push_back(static_cast<std::int32_t>(label));
    data.parts.push_back(place < s.taught ? NodePart::training
                         : place % 2 == 0 ? NodePart::validation
                                          : NodePart::test);
    Draws draws(0, stream, 0, static_cast<std::uint32_t>(node));
    for (std::int64_t i = 0; i < s.features; ++i)
      data.values.push_back(static_cast<float>(normal_draw(draws) + (i == label ? s.signal : 0)));
    for (std::int64_t other = 0; other < node; ++other) {
      const double chance = other % s.classes == label ? s.among_same() : s.among_others();
      if (draws.unit() < chance)
        data.edges.emplace_back(static_cast<std::int32_t>(node), static_cast<std::int32_t>(other));
    }
  }
  return data;
}

// Chances of each class of each node by its features alone, and by its label where that is taught.
std::vector<double> evidence(const GraphData& data, double signal) {
  std::vector<double> chances;
  for (std::int64_t node = 0; node < data.nodes; ++node) {
    const auto at = static_cast<std::size_t>(node);
    for (std::int64_t k = 0; k < data.classes; ++k) {
      const double by_features =
          std::exp(signal * data.values[at * static_cast<std::size_t>(data.features) + static_cast<std::size_t>(k)]);
      chances.push_back(data.parts[at] != NodePart::training ? by_features : data.labels[at] == k ? 1.0 : 0.0);
    }
  }
  return chances;
}

}  // namespace

BlockModel::BlockModel(const DataConfig& config, const BatchShape&)
    : GraphSource("the block model", draw_graph(BlockSettings(config)), config) {
  const BlockSettings settings(config);
  same_ = settings.among_same();
  others_ = settings.among_others();
  signal_ = settings.signal;
}

const BlockModel::Best& BlockModel::best() const {
  std::call_once(known_, [this] {
    const std::vector<double> beliefs = propagate_beliefs(data(), evidence(data(), signal_), same_, others_);
    const auto classes = static_cast<std::size_t>(data().classes);
    double held = 0;
    for (std::size_t node = 0; node < data().parts.size(); ++node) {
      if (data().parts[node] == NodePart::training) continue;
      const std::span<const double> own = std::span(beliefs).subspan(node * classes, classes);
      best_.accuracy += *std::ranges::max_element(own);
      for (const double chance : own) best_.loss -= chance > 0 ? chance * std::log(chance) : 0;
      ++held;
    }
    best_.accuracy /= held;
    best_.loss /= held;
  });
  return best_;
}

std::string BlockModel::describe() const {
  return fmt::format("block_model: {} nodes in {} classes, {} edges, {} features; best accuracy {:.4f}, loss {:.4f}",
                     data().nodes, data().classes, data().edges.size(), data().features, best().accuracy, best().loss);
}

}  // namespace norma
