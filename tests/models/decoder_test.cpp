// The decoder: derivatives of the whole model, and configurations that cannot be.
#include "norma/models/model.h"

#include "check.h"
#include "norma/models/fusions.h"
#include "norma/models/stack.h"
#include "norma/schemes/catalogue.h"

namespace norma {
namespace {

ModelConfig tiny(const std::string& scheme, DType dtype = DType::f32) {
  return {
      .layers = 3, .width = 24, .heads = 3, .vocabulary = 17, .batch = 4, .time = 9, .scheme = scheme, .dtype = dtype};
}

void fill_ids(Session& session, const ModelConfig& config, int member = 0) {
  for (const char* name : {"tokens", "targets"}) {
    const RandomStream stream(3, name);
    const std::span<std::int32_t> ids = session.tensor<std::int32_t>(name, member);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ids[i] = static_cast<std::int32_t>(stream.below(i, static_cast<std::uint64_t>(config.vocabulary)));
    }
  }
}

// Every scheme that can be built, straight from the catalogue.
class Catalogue : public testing::TestWithParam<std::string> {};

TEST_P(Catalogue, EveryParameterHasTheRightGradient) {
  const ModelConfig config = tiny(GetParam(), DType::f64);
  Graph names;
  const std::vector<ParameterSpec> specs = build_model(names, config).parameters;
  std::vector<std::string> parameters;
  for (const ParameterSpec& spec : specs) parameters.push_back(spec.name);
  // Near the initial values, where schemes without norms are tame, but nowhere special: gains that start at 0 or 1
  // move.
  // A scheme that stops gradients has by intention not the derivative of its value; GPAS does where its gate is 0.
  const bool stops_gradients = GetParam() == "gpas";
  const auto prepare = [&](Session& session) {
    fill_ids(session, config);
    initialise(session, specs, 1);
    for (const std::string& name : session.plan().slot_names(Role::input)) {
      if (name.starts_with("schedule.")) session.tensor<double>(name)[0] = 0.3;
    }
    for (const ParameterSpec& spec : specs) {
      if (stops_gradients && spec.name.ends_with(".g")) continue;
      const RandomStream stream(2, spec.name);
      const std::span<double> tensor = session.tensor<double>(spec.name);
      for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] += 0.2 * stream.normal(i);
    }
  };
  test::check_gradients([&](Graph& g) { return build_model(g, config).loss; }, parameters,
                        {.most_elements = 3, .compile = {.rewrites = all_fusions()}, .prepare = prepare});
}

std::vector<std::string> buildable() {
  std::vector<std::string> names;
  for (const Scheme& scheme : catalogue()) {
    try {
      Graph g;
      build_model(g, tiny(scheme.name));
      names.push_back(scheme.name);
    } catch (const NotBuiltError&) {
    }
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, Catalogue, testing::ValuesIn(buildable()), [](const auto& test) { return test.param; });

TEST(Decoder, BadConfigurationsAreNamed) {
  Graph g;
  ModelConfig config = tiny("pre");
  config.layers = 0;
  EXPECT_EQ(test::error_of([&] { build_model(g, config); }), "a stack needs at least one layer, but 0 were asked for");
  Graph h;
  config = tiny("pre");
  config.heads = 7;
  EXPECT_NE(test::error_of([&] { build_model(h, config); }).find("72 is not divisible by 21 heads (7 of queries"),
            std::string::npos);
}

}  // namespace
}  // namespace norma
