#include "norma/lab/gradient.h"

#include <cmath>

#include "norma/core/error.h"
#include "norma/models/gradients.h"
#include "norma/ops/gradient_norm.h"
#include "norma/train/step.h"

namespace norma {
namespace {

double norm_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v * v;
  return std::sqrt(sum);
}

}  // namespace

const ParameterGradient& GradientProfile::at(std::string_view name) const {
  for (const ParameterGradient& parameter : parameters) {
    if (parameter.name == name) return parameter;
  }
  fail("the model has no parameter '{}'; layers whose formula calls no branch f(..) have no weights to look at", name);
}

std::vector<double> GradientProfile::of_layer(std::string_view layer, std::string_view role) const {
  std::vector<double> squares(loss.size(), 0);
  for (const ParameterGradient& parameter : parameters) {
    if (parameter.layer != layer || (!role.empty() && parameter.role != role)) continue;
    for (std::size_t member = 0; member < squares.size(); ++member)
      squares[member] += parameter.of_mean[member] * parameter.of_mean[member];
  }
  for (double& v : squares) v = std::sqrt(v);
  return squares;
}

GradientProfile measure_gradient(const Subject& subject, int batches) {
  if (batches < 1) fail("a gradient needs at least one batch, not {}", batches);
  Rig rig(subject,
          [&](Graph& graph, const Model& model) {
            Wires parameters;
            for (const ParameterSpec& spec : model.parameters) parameters.push_back(graph.find(spec.name));
            Wires gradients = differentiate_model(subject.model, model.loss, parameters);
            const Wire first = graph.input("first", {{1}, subject.model.dtype});
            const GradientNorm norm = gradient_norm(gradients, graph.input("clip", {{1}, subject.model.dtype}));
            graph.output("squares", norm.squares);
            for (std::size_t i = 0; i < gradients.size(); ++i)
              accumulate_gradient(gradients[i], first, parameters[i].name());
            graph.output("loss", model.loss);
          },
          {.backward = true});
  GradientProfile profile;
  const auto members = static_cast<std::size_t>(rig.members());
  profile.loss.assign(members, 0);
  for (const ParameterSpec& spec : rig.parameters())
    profile.parameters.push_back(
        {spec.name, spec.role, layer_of(spec.name), std::vector<double>(members, 0), std::vector<double>(members, 0)});
  for (int batch = 0; batch < batches; ++batch) {
    rig.load_batch(static_cast<std::uint64_t>(batch));
    for (int member = 0; member < rig.members(); ++member) rig.write("first", batch == 0 ? 1 : 0, member);
    rig.run();
    for (int member = 0; member < rig.members(); ++member) {
      const auto m = static_cast<std::size_t>(member);
      profile.loss[m] += rig.number("loss", member) / batches;
      for (std::size_t i = 0; i < profile.parameters.size(); ++i)
        profile.parameters[i].per_batch[m] += std::sqrt(rig.number("squares", member, i)) / batches;
    }
  }
  for (ParameterGradient& parameter : profile.parameters) {
    for (int member = 0; member < rig.members(); ++member)
      parameter.of_mean[static_cast<std::size_t>(member)] =
          norm_of(rig.values(parameter.name + "/sum", member)) / batches;
  }
  return profile;
}

}  // namespace norma
