#include "norma/lab/depth_use.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>
#include <utility>

#include "lab/analyses/contribution.h"
#include "lab/analyses/turn.h"
#include "lab/workshop.h"
#include "norma/core/error.h"
#include "norma/ops/elementwise.h"
#include "norma/train/result.h"
#include "norma/train/step.h"

namespace norma {
namespace {

using Layers = std::vector<std::int64_t>;

// Mean loss of each held-out batch, by member.
using Losses = std::vector<std::vector<double>>;  // [member][batch]

std::vector<double> mean_of(const Losses& losses) {
  std::vector<double> means;
  for (const std::vector<double>& one : losses) means.push_back(estimate_of(one).mean);
  return means;
}

std::vector<double> minus(std::vector<double> a, const std::vector<double>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return a;
}

// Of the stacks whose layers are counted.
std::vector<SublayerSite> own_sites(const ModelConfig& config, const Model& model) {
  std::vector<SublayerSite> sites;
  for (const StackSites& stack : last_stacks(config)) {
    for (const SublayerSite& site : model.sites) {
      if (stack_of(site.name) == stack.prefix()) sites.push_back(site);
    }
  }
  return sites;
}

// Of the stream behind the layer before, where a layer reads it (beside what else it has been given), and behind it.
struct LayerShapes {
  std::string stack;
  Shape before, in, out;
  bool keeps() const { return before == in && in == out; }
};

// Whether the site at `index` ends its layer.
bool ends_layer(const std::vector<SublayerSite>& sites, std::size_t index) {
  return index + 1 == sites.size() || layer_of(sites[index + 1].name) != layer_of(sites[index].name);
}

std::vector<LayerShapes> shapes_of(const std::vector<SublayerSite>& sites) {
  std::vector<LayerShapes> shapes;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const Shape& in = sites[i].stream_in.shape();
    if (i == 0 || ends_layer(sites, i - 1))
      shapes.push_back({.stack = std::string(stack_of(sites[i].name)),
                        .before = i == 0 ? in : shapes.back().out,
                        .in = in,
                        .out = {}});
    shapes.back().out = sites[i].stream_out.shape();
  }
  return shapes;
}

class DepthMeter {
 public:
  DepthMeter(const Subject& subject, const DepthUseOptions& options)
      : subject_(subject), options_(options), share_(std::exchange(subject_.share, {})) {
    batches_ = std::min(options.batches, subject.source->evaluation_batches());
    if (batches_ < 1) fail("depth use is measured on held-out batches, but the data has none");
    layers_ = std::ssize(layers_of_last_stacks(subject.model));
    planned_ = 2 + 4 * static_cast<double>(layers_);
    // Drawing initial weights again for every variant would cost more than running it.
    Rig rig(subject, [&](Graph& graph, const Model& model) {
      graph.output("loss", model.loss);
      shapes_ = shapes_of(own_sites(subject.model, model));
    });
    subject_.weights = weights_of(rig.session(), rig.parameters());
  }

  DepthUse measure() {
    const std::int64_t layers = layers_;
    DepthUse use;
    use.layers = layers;
    const Layers all = whole();
    std::vector<LayerOrder> orders = {{.layers = all}};
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      Layers rest = all;
      std::erase(rest, layer);
      orders.push_back({.layers = rest});
    }
    std::vector<std::int64_t> moved;  // those that can change places with the next
    for (std::int64_t layer = 0; layer + 1 < layers; ++layer) {
      if (!alike(layer, layer + 1)) continue;
      moved.push_back(layer);
      Layers swapped = all;
      std::swap(swapped[static_cast<std::size_t>(layer)], swapped[static_cast<std::size_t>(layer + 1)]);
      orders.push_back({.layers = swapped});
      orders.push_back({.layers = all, .beside = layer + 1});
    }
    const std::vector<Losses> found = losses(orders);
    use.loss = mean_of(found[0]);
    const auto change = [&](std::int64_t index) {
      return minus(mean_of(found[static_cast<std::size_t>(index)]), use.loss);
    };
    for (std::int64_t layer = 0; layer < layers; ++layer) use.deletion.push_back(change(1 + layer));
    if (!moved.empty()) {
      const std::vector<double> unknown(use.loss.size(), std::numeric_limits<double>::quiet_NaN());
      use.swap.assign(static_cast<std::size_t>(layers - 1), unknown);
      use.width_equivalence = use.swap;
    }
    for (std::size_t i = 0; i < moved.size(); ++i) {
      const auto layer = static_cast<std::size_t>(moved[i]);
      const std::int64_t at = 1 + layers + 2 * static_cast<std::int64_t>(i);
      use.swap[layer] = change(at);
      use.width_equivalence[layer] = change(at + 1);
    }
    keep_best(use, found[0]);
    states(use);
    use.shape_changes = !std::ranges::all_of(shapes_, &LayerShapes::keeps);
    return use;
  }

 private:
  Layers whole() const {
    Layers all(static_cast<std::size_t>(layers_));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  std::vector<Losses> losses(const std::vector<LayerOrder>& orders) {
    std::vector<Losses> all(orders.size());
    spread(orders.size(), share_, [&](std::size_t index) {
      if (options_.progress) {
        const std::lock_guard lock(telling_);
        options_.progress(std::min(1.0, done_++ / planned_));
      }
      all[index] = losses_of(orders[index]);
    });
    return all;
  }

  Losses losses_of(const LayerOrder& order) const {
    Rig rig(subject_, [](Graph& graph, const Model& model) { graph.output("loss", model.loss); },
            {.model = {.order = order}});
    Losses result(static_cast<std::size_t>(rig.members()));
    for (std::int64_t batch = 0; batch < batches_; ++batch) {
      rig.load_evaluation_batch(batch);
      if (rig.counted_targets() == 0) continue;
      rig.run();
      for (int member = 0; member < rig.members(); ++member)
        result[static_cast<std::size_t>(member)].push_back(rig.number("loss", member));
    }
    if (result[0].empty()) fail("no held-out batch has a target");
    return result;
  }

  // Layers in the order of what their deletion costs, the mean member's; the k best stay.
  void keep_best(DepthUse& use, const Losses& full) {
    Layers ranked = whole();
    std::stable_sort(ranked.begin(), ranked.end(), [&](std::int64_t a, std::int64_t b) {
      return estimate_of(use.deletion[static_cast<std::size_t>(a)]).mean >
             estimate_of(use.deletion[static_cast<std::size_t>(b)]).mean;
    });
    std::vector<LayerOrder> orders;
    for (std::size_t k = 0; k < ranked.size(); ++k) {
      Layers kept(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(k));
      std::sort(kept.begin(), kept.end());
      orders.push_back({.layers = kept});
    }
    std::vector<Losses> curve = losses(orders);
    curve.push_back(full);
    for (const Losses& one : curve) use.kept.push_back(mean_of(one));
    use.loss_hollow = use.kept.front();
    find_depth(use, curve);
  }

  void find_depth(DepthUse& use, const std::vector<Losses>& curve) const {
    const std::size_t members = curve[0].size(), batches = curve[0][0].size();
    std::vector<double> guessing = guessing_losses(*subject_.source, subject_.seeds.at(0), batches_);
    if (guessing.size() != batches) guessing.assign(batches, std::numeric_limits<double>::infinity());
    std::vector<double> depths;
    use.learned = false;
    for (std::size_t member = 0; member < members; ++member) {
      std::vector<double> by_layers;
      for (const std::vector<double>& kept : use.kept) by_layers.push_back(kept[member]);
      const std::optional<double> depth = effective_depth(by_layers, estimate_of(guessing).mean);
      use.learned = use.learned || depth;
      depths.push_back(depth.value_or(0));
    }
    use.effective_depth = estimate_of(depths);
    if (members > 1 || !use.learned) return;
    std::vector<std::vector<double>> by_batch;
    for (const Losses& losses : curve) by_batch.push_back(losses[0]);
    use.effective_depth = effective_depth_over_batches(by_batch, guessing);
  }

  // Whether two neighbours leave the stream of one stack in its shape.
  bool alike(std::int64_t a, std::int64_t b) const {
    const LayerShapes &one = shapes_.at(static_cast<std::size_t>(a)), &other = shapes_.at(static_cast<std::size_t>(b));
    return one.stack == other.stack && one.keeps() && other.keeps();
  }

  // How far each layer turns the stream, and angles between the stream at any two borders of layers, where it has one
  // shape at both.
  void states(DepthUse& use) {
    std::vector<std::string> borders;  // behind each layer, and before the first
    std::vector<Shape> shapes;
    Rig rig(subject_, [&](Graph& graph, const Model& model) {
      const std::vector<SublayerSite> sites = own_sites(subject_.model, model);
      const auto border = [&](Wire x) {
        borders.push_back("border/" + std::to_string(borders.size()));
        shapes.push_back(x.shape());
        graph.output(borders.back(), x * 1.0);
      };
      border(sites.front().stream_in);
      for (std::size_t i = 0; i < sites.size(); ++i) {
        if (i == 0 || ends_layer(sites, i - 1))
          graph.output("before/" + std::to_string(borders.size()), stream_before(model, sites[i]) * 1.0);
        if (ends_layer(sites, i)) border(sites[i].stream_out);
      }
    });
    rig.load_evaluation_batch(0);
    rig.run();
    const auto width = [&](std::size_t border) { return static_cast<std::size_t>(shapes[border].channels()); };
    use.influence.assign(borders.size() - 1, {});
    for (int member = 0; member < rig.members(); ++member) {
      std::vector<std::vector<double>> state;
      for (const std::string& border : borders) state.push_back(rig.values(border, member));
      for (std::size_t layer = 0; layer + 1 < borders.size(); ++layer)
        use.influence[layer].push_back(mean_turn(influence_of,
                                                 rig.values("before/" + std::to_string(layer + 1), member),
                                                 state[layer + 1], width(layer + 1)));
      if (member > 0) continue;
      use.angular_distance.assign(borders.size(), std::vector<double>(borders.size(), 0));
      for (std::size_t a = 0; a < borders.size(); ++a) {
        for (std::size_t b = 0; b < a; ++b)
          use.angular_distance[a][b] = use.angular_distance[b][a] =
              shapes[a] == shapes[b] ? mean_turn(angle_of, state[b], state[a], width(a))
                                     : std::numeric_limits<double>::quiet_NaN();
      }
    }
  }

  // Mean over tokens of a reading of turn.h.
  static double mean_turn(double (*reading)(double), const std::vector<double>& a, const std::vector<double>& b,
                          std::size_t width) {
    double sum = 0;
    for (std::size_t token = 0; token < a.size(); token += width) {
      double aa = 1e-30, bb = 1e-30, distance = 0;  // rectified pixels may be all zero: then they point nowhere
      for (std::size_t i = token; i < token + width; ++i) {
        aa += a[i] * a[i];
        bb += b[i] * b[i];
      }
      for (std::size_t i = token; i < token + width; ++i) {
        const double difference = a[i] / std::sqrt(aa) - b[i] / std::sqrt(bb);
        distance += difference * difference;
      }
      sum += reading(distance);
    }
    return sum / static_cast<double>(a.size() / width);
  }

  Subject subject_;
  const DepthUseOptions& options_;
  const Workshop::Threads share_;  // of the threads, for variants side by side
  std::mutex telling_;
  std::int64_t batches_ = 0, layers_ = 0;
  double planned_ = 1, done_ = 0;
  std::vector<LayerShapes> shapes_;
};

}  // namespace

DepthUse measure_depth_use(const Subject& subject, const DepthUseOptions& options) {
  return DepthMeter(subject, options).measure();
}

}  // namespace norma
