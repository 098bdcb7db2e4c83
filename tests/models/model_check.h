// What tests of models share: small configurations of every family, and inputs for them.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "check.h"
#include "norma/models/model.h"
#include "norma/schemes/library.h"

namespace norma::test {

inline std::string name_of(Family family) { return family->name; }

// Awkward sizes; two stacks of different depth.
inline ModelConfig tiny(Family family, const std::string& scheme, DType dtype = DType::f32) {
  ModelConfig config{.family = family, .layers = 3, .width = 24, .heads = 3, .vocabulary = 17, .batch = 4, .time = 9};
  config.scheme = scheme;
  config.dtype = dtype;
  if (family == "encoder_decoder") {
    config.layers = 2;
    config.encoder_layers = 3;
    config.source_time = 7;
    config.source_vocabulary = 13;
  }
  for (const FamilyRow::OwnSize& size : family->sizes) {
    if (size.usual > 0)
      set_size(config, size.name,
               std::min<std::int64_t>(size.usual, size.name.starts_with("image_") || size.name == "nodes" ? 8 : 7));
  }
  if (family->batch > 0) config.batch = family->batch;
  return config;
}

// Random ids and numbers, lengths that leave some padding, schedules in the middle, dropout and smoothing on.
inline void fill_inputs(CpuSession& session, const ModelConfig& config, int member = 0, std::uint64_t seed = 3) {
  const auto ids = [&](const std::string& name, std::int64_t below) {
    const RandomStream stream(seed, name);
    const std::span<std::int32_t> tensor = session.tensor<std::int32_t>(name, member);
    for (std::size_t i = 0; i < tensor.size(); ++i)
      tensor[i] = static_cast<std::int32_t>(stream.below(i, static_cast<std::uint64_t>(below)));
  };
  const auto number = [&](const std::string& name, double value) {
    if (session.plan().slot(name).type.dtype == DType::f32) {
      session.tensor<float>(name, member)[0] = static_cast<float>(value);
    } else {
      session.tensor<double>(name, member)[0] = value;
    }
  };
  const auto numbers = [&](const std::string& name) {
    const RandomStream stream(seed, name);
    const auto draw = [&](auto tensor) {
      for (std::size_t i = 0; i < tensor.size(); ++i)
        tensor[i] = static_cast<std::remove_reference_t<decltype(tensor[i])>>(stream.normal(i));
    };
    if (config.dtype == DType::f32) {
      draw(session.tensor<float>(name, member));
    } else {
      draw(session.tensor<double>(name, member));
    }
  };
  const auto lengths = [&](const std::string& name, std::int64_t time) {
    const std::span<std::int32_t> tensor = session.tensor<std::int32_t>(name, member);
    for (std::size_t b = 0; b < tensor.size(); ++b)
      tensor[b] = static_cast<std::int32_t>(std::max<std::int64_t>(1, time - 2 * static_cast<std::int64_t>(b)));
  };
  for (const InputSpec& input : config.family->inputs(config)) {
    if (!session.plan().has_slot(input.name)) continue;
    switch (input.content) {
      case InputSpec::Content::ids:
      case InputSpec::Content::targets: ids(input.name, input.below); break;
      case InputSpec::Content::lengths: lengths(input.name, input.below); break;
      case InputSpec::Content::numbers: numbers(input.name); break;
    }
  }
  for (const std::string& name : session.plan().slot_names(Role::input)) {
    if (name == "dropout") number(name, 0.25);
    if (name == "smoothing") number(name, 0.1);
    if (name == "dropout_key") session.write<std::int32_t>(name, std::array{7, 0, 3, 0}, member);
    if (name.starts_with("schedule.")) number(name, 0.3);
  }
}

inline std::vector<std::string> catalogue_names() {
  std::vector<std::string> names;
  for (const Scheme& scheme : catalogue()) names.push_back(scheme.name);
  return names;
}

// The loss of a model with its initial weights, in f64.
inline double initial_loss(const ModelConfig& config) {
  Graph graph;
  const Model model = build_model(graph, config);
  graph.output("loss", model.loss);
  CpuSession session(test::plain_plan(graph), {.threads = 1});
  initialise(session, model.parameters, 1);
  fill_inputs(session, config);
  session.run();
  return session.tensor<double>("loss")[0];
}

// The hidden state of a model with its initial weights.
inline std::vector<double> hidden_of(const ModelConfig& config, std::uint64_t seed = 1) {
  Graph graph;
  const Model model = build_model(graph, config);
  graph.output("hidden", model.hidden);
  CpuSession session(test::plain_plan(graph));
  initialise(session, model.parameters, seed);
  fill_inputs(session, config);
  session.run();
  return {session.tensor<double>("hidden").begin(), session.tensor<double>("hidden").end()};
}

inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

// Embeddings of unit size, so that a norm's eps counts for little.
inline ModelConfig wide_embedding(Family family, const std::string& scheme) {
  ModelConfig config = tiny(family, scheme, DType::f64);
  config.embedding_std = 1;
  return config;
}

// Rms of the stream behind every sublayer at the start, over so many networks.
inline std::vector<double> initial_streams(const ModelConfig& config, int seeds) {
  std::vector<double> squares;
  for (int seed = 1; seed <= seeds; ++seed) {
    Graph graph;
    const Model model = build_model(graph, config);
    for (const SublayerSite& site : model.sites) graph.output("out/" + site.name, site.stream_out * 1.0);
    CpuSession session(test::plain_plan(graph), {.threads = 1});
    initialise(session, model.parameters, static_cast<std::uint64_t>(seed));
    fill_inputs(session, config, 0, static_cast<std::uint64_t>(seed) + 2);
    session.run();
    squares.resize(model.sites.size());
    for (std::size_t i = 0; i < squares.size(); ++i) {
      double sum = 0;
      const auto x = session.tensor<float>("out/" + model.sites[i].name);
      for (const float v : x) sum += static_cast<double>(v) * v;
      squares[i] += sum / static_cast<double>(x.size()) / seeds;
    }
  }
  for (double& square : squares) square = std::sqrt(square);
  return squares;
}

// Of every parameter of a model in double, at weights a little away from where they start, and where `moved` puts them.
inline void check_model_gradients(
    const ModelConfig& config,
    const std::function<void(CpuSession&, const ParameterSpec&)>& moved = [](auto&, auto&) {}) {
  std::vector<ParameterSpec> specs;
  {
    Graph graph;
    specs = build_model(graph, config).parameters;
  }
  std::vector<std::string> names;
  for (const ParameterSpec& spec : specs) names.push_back(spec.name);
  const auto prepare = [&](CpuSession& session) {
    initialise(session, specs, 1);
    fill_inputs(session, config);
    for (const ParameterSpec& spec : specs) {
      const RandomStream stream(2, spec.name);
      const std::span<double> tensor = session.tensor<double>(spec.name);
      for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] += 0.1 * stream.normal(i);
      moved(session, spec);
    }
  };
  check_gradients([&](Graph& g) { return build_model(g, config).loss; }, names,
                  {.tolerance = 1e-6, .most_elements = 1, .prepare = prepare});
}

}  // namespace norma::test
