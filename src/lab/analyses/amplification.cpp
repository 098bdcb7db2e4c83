#include "norma/lab/amplification.h"

#include <cmath>
#include <iterator>

#include "norma/core/error.h"
#include "norma/core/random.h"
#include "norma/core/side_by_side.h"
#include "norma/models/gradients.h"
#include "norma/norms/row.h"
#include "norma/ops/elementwise.h"
#include "norma/train/step.h"

namespace norma {
namespace {

constexpr const char* kOutput = "normalised";

Wire normalised(Wire x) { return layer_norm(x, {}, {}); }

double squared_distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

// Whether a parameter is a weight matrix of a layer.
bool is_layer_weight(const ParameterSpec& spec) {
  const bool in_layer = spec.name.find("layers.") != std::string::npos;
  return in_layer && spec.role != "bias" && spec.role != "norm" && spec.role != "learned";
}

}  // namespace

Amplification measure_amplification(const Subject& subject, double size) {
  Amplification found;
  std::vector<double> tokens;  // of the outputs: channels may differ from layer to layer
  Rig rig(subject, [&](Graph& graph, const Model& model) {
    graph.output(kOutput, normalised(model.hidden));
    tokens.push_back(static_cast<double>(model.hidden.shape().rows()));
    for (const SublayerSite& site : model.sites) {
      found.sites.push_back(site.name);
      graph.output("site/" + site.name, normalised(site.stream_out));
      tokens.push_back(static_cast<double>(site.stream_out.shape().rows()));
    }
  });
  rig.load_batch(0);
  rig.run();
  std::vector<std::string> outputs = {kOutput};
  for (const std::string& site : found.sites) outputs.push_back("site/" + site);
  const auto members = static_cast<std::size_t>(rig.members());
  std::vector<std::vector<std::vector<double>>> before(members);
  side_by_side(members, rig.session().threads(), [&](std::size_t member) {
    for (const std::string& output : outputs) before[member].push_back(rig.values(output, static_cast<int>(member)));
    for (const ParameterSpec& spec : rig.parameters()) {
      if (!is_layer_weight(spec)) continue;
      const RandomStream noise(subject.seeds[member], "lab.amplification." + spec.name);
      transform(rig.session(), spec.name, static_cast<int>(member),
                [&](std::size_t i, double w) { return w + (noise.uniform(i) < 0.5 ? size : -size); });
    }
  });
  rig.run();
  std::vector<std::vector<double>> changes(outputs.size(), std::vector<double>(members));
  side_by_side(members, rig.session().threads(), [&](std::size_t member) {
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      const std::vector<double> after = rig.values(outputs[o], static_cast<int>(member));
      changes[o][member] = squared_distance(before[member][o], after) / tokens[o];
    }
  });
  found.output = std::move(changes[0]);
  found.profile.assign(std::make_move_iterator(changes.begin() + 1), std::make_move_iterator(changes.end()));
  return found;
}

FirstStep measure_first_step(const Subject& subject, double sgd_lr, double sign_lr) {
  Rig rig(subject,
          [&](Graph& graph, const Model& model) {
            Wires parameters;
            for (const ParameterSpec& spec : model.parameters) parameters.push_back(graph.find(spec.name));
            const Wires gradients = differentiate_model(subject.model, model.loss, parameters);
            for (std::size_t i = 0; i < gradients.size(); ++i)
              graph.output("d/" + model.parameters[i].name, gradients[i]);
            graph.output(kOutput, normalised(model.hidden));
          },
          {.backward = true, .copies = 4});
  rig.load_batch(0);
  rig.run();
  std::vector<std::vector<double>> before;
  for (int member = 0; member < rig.members(); ++member) {
    before.push_back(rig.values(kOutput, member));
    const bool sign = member % 2 == 1, all = member % 4 >= 2;
    for (const ParameterSpec& spec : rig.parameters()) {
      if (!all && !is_layer_weight(spec)) continue;
      const std::vector<double> gradient = rig.values("d/" + spec.name, member);
      transform(rig.session(), spec.name, member, [&](std::size_t i, double w) {
        const double g = gradient[i];
        return w - spec.lr * (sign ? sign_lr * (g > 0 ? 1 : g < 0 ? -1 : 0) : sgd_lr * g);
      });
    }
  }
  rig.run();
  FirstStep found;
  for (int member = 0; member < rig.members(); ++member) {
    const std::vector<double> after = rig.values(kOutput, member);
    const double change = std::sqrt(squared_distance(before[static_cast<std::size_t>(member)], after) /
                                    static_cast<double>(after.size()));
    std::vector<double>* const kinds[] = {&found.sgd, &found.sign, &found.sgd_all, &found.sign_all};
    kinds[member % 4]->push_back(change);
  }
  return found;
}

}  // namespace norma
