#include "theory/measured_networks.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "check.h"
#include "norma/models/profile.h"
#include "schemes/named.h"

namespace norma::test {
namespace {

double square_sum(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return sum;
}

void prepare(CpuSession& session, const Model& model, std::uint64_t first) {
  for (int m = 0; m < session.members(); ++m) {
    const std::uint64_t seed = first + static_cast<std::uint64_t>(m);
    initialise(session, model.parameters, seed, m);
    for (const char* name : {"tokens", "targets", "source"}) {
      if (!session.plan().has_slot(name)) continue;
      const RandomStream stream(seed, name);
      const std::span<std::int32_t> ids = session.tensor<std::int32_t>(name, m);
      for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(stream.below(i, kVocabulary));
    }
    if (session.plan().has_slot("source_lengths"))
      std::ranges::fill(session.tensor<std::int32_t>("source_lengths", m), static_cast<std::int32_t>(kTime));
    for (const Schedule& schedule : model.schedules)
      session.tensor<float>(schedule.input, m)[0] = static_cast<float>(schedule.at(0, 1));
  }
}

// Adds +-1e-4 to every weight of every branch.
void disturb(CpuSession& session, const Model& model, float step) {
  for (int m = 0; m < session.members(); ++m) {
    for (const ParameterSpec& spec : model.parameters) {
      if (spec.name.find("layers.") == std::string::npos || !spec.name.ends_with(".weight")) continue;
      const RandomStream stream(7 + static_cast<std::uint64_t>(m), spec.name);
      const std::span<float> weight = session.tensor<float>(spec.name, m);
      Philox::Counter words{};
      for (std::size_t i = 0; i < weight.size(); ++i) {
        if (i % 4 == 0) words = stream.block(i / 4);
        weight[i] += words[i % 4] % 2 == 0 ? step : -step;
      }
    }
  }
}

ModelConfig model_config(Family family, const std::string& scheme, std::int64_t layers) {
  return {.family = family,
          .layers = layers,
          .width = kWidth,
          .heads = kHeads,
          .vocabulary = kVocabulary,
          .batch = 1,
          .time = kTime,
          .scheme = scheme};
}

// What a scheme profiles, on the batch that is looked at.
std::vector<double> profile(CpuSession& target, const ModelConfig& config, const Model& model,
                            const Networks& networks) {
  Graph graph;
  const Model profiling = build_model(graph, config, {.profile = true});
  CpuSession session(test::plain_plan(graph), {.members = networks.seeds});
  prepare(session, profiling, networks.first);
  session.run();
  std::vector<double> found;
  for (int m = 0; m < networks.seeds; ++m) apply_profile(session, target, model.parameters, m);
  for (const SublayerSite& site : model.sites) {
    double sum = 0;
    for (int m = 0; m < networks.seeds; ++m)
      sum += session.tensor<float>(fmt::format("profile.{}.omega", site.name), m)[0];
    found.push_back(sum / networks.seeds);
  }
  return found;
}

}  // namespace

Measured measure(const std::string& scheme, std::int64_t layers, const Networks& networks, Family family) {
  Graph graph;
  const ModelConfig config = model_config(family, scheme, layers);
  const Model model = build_model(graph, config);
  Wires weights;
  for (const SublayerSite& site : model.sites) weights.push_back(graph.find(site.name + ".out.weight"));
  const int seeds = networks.seeds;
  const Wires gradients = differentiate(model.loss, weights);
  const std::size_t count = model.sites.size();
  for (std::size_t i = 0; i < count; ++i) graph.output(fmt::format("stream{}", i), model.sites[i].stream_out);
  for (std::size_t i = 0; i < gradients.size(); ++i) graph.output(fmt::format("gradient{}", i), gradients[i]);
  graph.output("hidden", model.hidden);
  CpuSession session(test::plain_plan(graph), {.members = seeds});
  prepare(session, model, networks.first);
  Measured result;
  const std::vector<LearnedSpec> learned = test::scheme_named(scheme).learned;
  if (std::ranges::any_of(learned, [](const LearnedSpec& spec) { return spec.profile != nullptr; }))
    result.profiled = profile(session, config, model, networks);
  session.run();
  const auto mean = [&](const std::string& name, double elements) {
    double sum = 0;
    for (int m = 0; m < seeds; ++m) sum += square_sum(session.tensor<float>(name, m));
    return sum / seeds / elements;
  };
  const double elements = static_cast<double>(kTime * kWidth);
  for (std::size_t i = 0; i < count; ++i) result.rms.push_back(std::sqrt(mean(fmt::format("stream{}", i), elements)));
  for (std::size_t i = 0; i < weights.size(); ++i)
    result.weight_gradient.push_back(std::sqrt(mean(fmt::format("gradient{}", i), 1)));
  std::vector<std::vector<float>> before;
  for (int m = 0; m < seeds; ++m) {
    const std::span<float> hidden = session.tensor<float>("hidden", m);
    before.emplace_back(hidden.begin(), hidden.end());
  }
  constexpr float kStep = 1e-4f;
  disturb(session, model, kStep);
  session.run();
  for (int m = 0; m < seeds; ++m) {
    const std::span<float> hidden = session.tensor<float>("hidden", m);
    for (std::size_t i = 0; i < hidden.size(); ++i) hidden[i] -= before[static_cast<std::size_t>(m)][i];
    result.amplification += square_sum(hidden) / seeds / elements / (kStep * kStep);
  }
  return result;
}

}  // namespace norma::test
