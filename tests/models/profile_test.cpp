// Admin's profile in one forward pass, against the loop of the paper: one sublayer at a time.
#include "norma/models/profile.h"

#include <cmath>

#include "models/model_check.h"
#include "norma/backends/cpu.h"

namespace norma {
namespace {

double variance(std::span<const double> values) {
  double sum = 0, squares = 0;
  for (const double v : values) sum += v;
  const double mean = sum / static_cast<double>(values.size());
  for (const double v : values) squares += (v - mean) * (v - mean);
  return squares / static_cast<double>(values.size());
}

ModelConfig admin(Family family) {
  ModelConfig config = test::tiny(family, "admin", DType::f64);
  config.dropout = true;
  return config;
}

class Profile : public testing::TestWithParam<Family> {};

TEST_P(Profile, IsThatOfTheLoop) {
  const ModelConfig config = admin(GetParam());
  Graph profiling;
  const Model measured = build_model(profiling, config, {.profile = true});
  CpuSession profiled(compile(profiling, cpu_backend()));
  initialise(profiled, measured.parameters, 1);
  test::fill_inputs(profiled, config);
  profiled.run();

  Graph graph;
  const Model model = build_model(graph, config);
  graph.output("loss", model.loss);
  for (const SublayerSite& site : model.sites) {
    graph.output("in/" + site.name, site.stream_in);
    graph.output("branch/" + site.name, site.branch);
  }
  const auto plan = test::plain_plan(graph);
  CpuSession looped(plan), target(plan);
  initialise(looped, model.parameters, 1);
  initialise(target, model.parameters, 1);
  test::fill_inputs(looped, config);
  apply_profile(profiled, target, model.parameters);

  double ratio = 1;
  std::string stack;
  for (const SublayerSite& site : model.sites) {
    const std::string here = site.name.substr(0, site.name.find("layers"));
    if (here != stack) ratio = 1;  // each stack on its own
    stack = here;
    std::ranges::fill(looped.tensor<double>(site.name + ".omega"), ratio);
    looped.run();
    std::vector<double> skip(looped.tensor<double>("in/" + site.name).begin(),
                             looped.tensor<double>("in/" + site.name).end());
    for (double& v : skip) v *= ratio;
    for (const double omega : target.tensor<double>(site.name + ".omega"))
      EXPECT_NEAR(omega, ratio, 1e-12) << site.name;
    ratio = std::sqrt(variance(skip) + variance(looped.tensor<double>("branch/" + site.name)));
    EXPECT_GT(ratio, 0);
  }
  EXPECT_GT(ratio, 1.1) << "it grows with depth";
}

INSTANTIATE_TEST_SUITE_P(Of, Profile, testing::Values("decoder", "encoder", "encoder_decoder"),
                         [](const auto& test) { return test::name_of(test.param); });

// The released profile is 1, 1.319, 1.455, ...: the first stream of a stack is as large as the norms make all others.
// With tables of 0.02 alone the second omega would be 0.03, and the second sublayer would lose what came before it.
TEST(Profile, NeverFallsBelowOneInADecoderAsItComes) {
  ModelConfig config{.layers = 6, .width = 32, .heads = 4, .vocabulary = 17, .batch = 4, .time = 64};
  config.scheme = "admin";
  Graph graph;
  const Model model = build_model(graph, config, {.profile = true});
  CpuSession session(test::plain_plan(graph));
  initialise(session, model.parameters, 1);
  test::fill_inputs(session, config);
  session.run();
  double before = 0.99;
  for (const SublayerSite& site : model.sites) {
    const double omega = static_cast<double>(session.tensor<float>("profile." + site.name + ".omega")[0]);
    EXPECT_GE(omega, before) << site.name;
    before = omega;
  }
  EXPECT_GT(before, 1.5);
}

TEST(Profile, EachMemberHasItsOwn) {
  const ModelConfig config = admin("decoder");
  Graph graph;
  const Model model = build_model(graph, config, {.profile = true});
  CpuSession session(test::plain_plan(graph), {.members = 2});
  for (const int member : {0, 1}) {
    initialise(session, model.parameters, static_cast<std::uint64_t>(member + 1), member);
    test::fill_inputs(session, config, member);
  }
  session.run();
  const char* name = "profile.layers.2.ffn.omega";
  EXPECT_NE(session.tensor<double>(name, 0)[0], session.tensor<double>(name, 1)[0]);
}

}  // namespace
}  // namespace norma
