#include "norma/lab/activations.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "lab/analyses/contribution.h"
#include "lab/analyses/turn.h"
#include "norma/core/error.h"
#include "norma/ops/attention.h"
#include "norma/ops/attention_probe.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduce.h"
#include "norma/ops/statistics.h"
#include "norma/ops/views.h"
#include "norma/train/step.h"

namespace norma {
namespace {

// Of each token's vectors before and after, [batch, time, 1]; see turn.h.
Wire squared_turn(Wire a, Wire b) {
  const auto unit = [](Wire x) { return x * rsqrt(sum_last(square(x)) + 1e-30); };
  return sum_last(square(unit(a) - unit(b)));
}

// A reading of turns, mean over tokens.
double mean_of_turns(double (*reading)(double), const std::vector<double>& turns) {
  double sum = 0;
  for (const double turn : turns) sum += reading(turn);
  return sum / static_cast<double>(turns.size());
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

// Zeros aside: half of a rectified stream.
double largest_over_median(std::vector<double> values) {
  for (double& v : values) v = std::abs(v);
  std::erase(values, 0.0);
  if (values.empty()) return 1;
  const double largest = *std::max_element(values.begin(), values.end());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return largest / *middle;
}

double kurtosis_of(const std::vector<double>& values) {
  const double mean = mean_of(values), n = static_cast<double>(values.size());
  double second = 0, fourth = 0;
  for (const double v : values) {
    const double square_of = (v - mean) * (v - mean);
    second += square_of / n;
    fourth += square_of * square_of / n;
  }
  return fourth / (second * second);
}

// Where the outputs of the traced model have what was watched.
struct Watched {
  std::map<std::string, std::int64_t> elements;
  std::map<std::string, std::size_t> heads;
};

class Tracer {
 public:
  // Of a batch of so many samples: of a graph they have many rows.
  Tracer(Graph& graph, const Model& model, std::int64_t samples, Activations& found, Watched& watched)
      : graph_(graph), found_(found), watched_(watched), samples_(samples) {
    const std::size_t forward_nodes = graph.nodes().size();
    for (const SublayerSite& site : model.sites) trace_site(model, site);
    for (const std::string& layer : found.layers) {
      const auto& [before, after] = ends_.at(layer);
      graph.output("influence/" + layer, squared_turn(before, after));
    }
    for (std::size_t index = 0; index < forward_nodes; ++index) trace_attention(static_cast<int>(index));
  }

 private:
  void trace_site(const Model& model, const SublayerSite& site) {
    found_.sites.push_back(site.name);
    const Contribution parts = contribution_of(model, site).value_or(Contribution{site.stream_in, site.branch});
    watch("kept/" + site.name, parts.kept);
    watch("added/" + site.name, parts.added);
    watch("out/" + site.name, site.stream_out);
    const Wire before = stream_before(site, parts);
    graph_.output("turn/" + site.name, squared_turn(before, site.stream_out));
    graph_.output("sample/" + site.name, slice_rows(site.stream_out, 0, site.stream_out.shape()[0] / samples_) * 1.0);
    const std::string layer = layer_of(site.name);
    if (!ends_.contains(layer)) {
      found_.layers.push_back(layer);
      ends_[layer] = {before, site.stream_out};
    }
    ends_[layer].second = site.stream_out;
  }

  void watch(const std::string& output, Wire x) {
    graph_.output(output, statistics(x));
    watched_.elements[output] = x.shape().elements();
  }

  void trace_attention(int index) {
    const auto* attention = dynamic_cast<const Attention*>(graph_.node(index).op.get());
    if (attention == nullptr) return;
    Wires in;
    for (const int id : graph_.node(index).inputs) in.push_back(Wire(&graph_, id));
    const std::string site = graph_.node(index).scope;
    if (std::ranges::find(found_.attention, site) != found_.attention.end()) return;
    found_.attention.push_back(site);
    const Wire probe = attention_probe(*attention, in);
    graph_.output("attention/" + site, probe);
    watched_.heads["attention/" + site] = static_cast<std::size_t>(probe.shape()[0]);
  }

  Graph& graph_;
  Activations& found_;
  Watched& watched_;
  std::int64_t samples_;
  std::map<std::string, std::pair<Wire, Wire>> ends_;
};

}  // namespace

Activations measure_activations(const Subject& subject) {
  Activations found;
  Watched watched;
  // In double precision, since some schemes start with branches a millionth of the stream.
  Rig rig(subject, [&](Graph& graph, const Model& model) { Tracer(graph, model, subject.model.batch, found, watched); },
          {.wide = true});
  rig.load_batch(0);
  rig.run();
  const auto by_member = [&](auto&& value) {
    std::vector<double> values;
    for (int member = 0; member < rig.members(); ++member) values.push_back(value(member));
    return values;
  };
  for (const std::string& site : found.sites) {
    const auto rms = [&](const char* what, int member) {
      const std::string output = what + site;
      return read_statistics(watched.elements.at(output), [&](std::size_t i) { return rig.number(output, member, i); })
          .rms;
    };
    found.stream_rms.push_back(by_member([&](int m) { return rms("out/", m); }));
    found.branch_share.push_back(by_member([&](int m) { return rms("added/", m) / rms("kept/", m); }));
    found.angle.push_back(by_member([&](int m) { return mean_of_turns(angle_of, rig.values("turn/" + site, m)); }));
    found.massive.push_back(by_member([&](int m) { return largest_over_median(rig.values("sample/" + site, m)); }));
    found.kurtosis.push_back(by_member([&](int m) { return kurtosis_of(rig.values("sample/" + site, m)); }));
  }
  for (const std::string& layer : found.layers)
    found.influence.push_back(
        by_member([&](int m) { return mean_of_turns(influence_of, rig.values("influence/" + layer, m)); }));
  for (const std::string& site : found.attention) {
    const std::string output = "attention/" + site;
    const auto summary = [&](int member) {
      return read_attention_probe(watched.heads.at(output),
                                  [&](std::size_t i) { return rig.number(output, member, i); });
    };
    found.entropy.push_back(by_member([&](int m) { return summary(m).entropy; }));
    found.logit_max.push_back(by_member([&](int m) { return summary(m).logit_max; }));
  }
  return found;
}

}  // namespace norma
