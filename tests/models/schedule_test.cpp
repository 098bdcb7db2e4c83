// Constants that depend on the step: their inputs, their values, and where one is per layer or per stack.
#include "norma/models/schedule.h"

#include <map>

#include "models/model_check.h"

namespace norma {
namespace {

using test::tiny;

std::map<std::string, Schedule> schedules_of_model(const ModelConfig& config) {
  Graph graph;
  std::map<std::string, Schedule> all;
  for (const Schedule& schedule : build_model(graph, config).schedules) {
    EXPECT_TRUE(graph.find(schedule.input)) << schedule.input;
    all[schedule.input] = schedule;
  }
  return all;
}

TEST(Schedule, PostToPreAndBack) {
  const auto all = schedules_of_model(tiny("decoder", "post_pre_post"));
  ASSERT_EQ(all.size(), 1u);
  const Schedule& s = all.at("schedule.s");
  EXPECT_EQ(s.at(0, 1000), 1) << "Post-LN first";
  EXPECT_NEAR(s.at(50, 1000), 0.5, 1e-12);
  EXPECT_EQ(s.at(100, 1000), 0) << "then Pre-LN";
  EXPECT_EQ(s.at(600, 1000), 0);
  EXPECT_NEAR(s.at(750, 1000), 0.5, 1e-12);
  EXPECT_EQ(s.at(900, 1000), 1) << "and back";
  EXPECT_EQ(s.at(1000, 1000), 1);
}

TEST(Schedule, PreToPost) {
  const Schedule s = schedules_of_model(tiny("encoder", "pre_to_post")).at("schedule.s");
  EXPECT_EQ(s.at(0, 1000), 0);
  EXPECT_EQ(s.at(200, 1000), 0);
  EXPECT_NEAR(s.at(400, 1000), 0.5, 1e-12);
  EXPECT_NEAR(s.at(600, 1000), 1, 1e-12);
}

TEST(Schedule, EndsAreTheSchemesThatItBlends) {
  const auto stream = [](const std::string& scheme, double s) {
    const ModelConfig config = tiny("decoder", scheme, DType::f64);
    Graph graph;
    const Model model = build_model(graph, config);
    graph.output("x", model.sites.back().stream_out);
    CpuSession session(test::plain_plan(graph));
    initialise(session, model.parameters, 1);
    test::fill_inputs(session, config);
    if (session.plan().has_slot("schedule.s")) session.tensor<double>("schedule.s")[0] = s;
    session.run();
    return std::vector<double>(session.tensor<double>("x").begin(), session.tensor<double>("x").end());
  };
  const auto near = [](const std::vector<double>& a, const std::vector<double>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-12);
  };
  for (const char* scheme : {"post_pre_post", "pre_to_post"}) {
    near(stream(scheme, 1), stream("post", 0));
    near(stream(scheme, 0), stream("pre", 0));
  }
}

TEST(Schedule, GivenConstantsMoveIt) {
  ModelConfig config = tiny("decoder", "post_pre_post");
  config.constants = {{"pre_at", 0.5}};
  EXPECT_NEAR(schedules_of_model(config).at("schedule.s").at(250, 1000), 0.5, 1e-12);
  config.constants = {{"s", 0.25}};
  EXPECT_TRUE(schedules_of_model(config).empty()) << "a given number is no schedule";
}

TEST(Schedule, ChainsAndPlaces) {
  const Scheme scheme = parse_scheme("mine",
                                     "sublayer = \"x + w*f(norm(x))\"\n"
                                     "[constants]\n"
                                     "w = \"clamp(p*2 - l/N, 0, 1)\"\n"  // deeper layers later
                                     "p = \"t/T\"\n");
  Graph graph;
  Parameters parameters(graph, DType::f32);
  const Wire x = graph.input("x", {{2, 3, 8}, DType::f32});
  const Stack stack = build_stack(parameters, scheme, {.branches = transformer_layer(), .layers = 4, .heads = 2}, x);
  std::map<std::string, Schedule> all;
  for (const Schedule& schedule : stack.schedules) all[schedule.input] = schedule;
  ASSERT_EQ(all.size(), 5u) << "p once, w for each layer";
  EXPECT_NEAR(all.at("schedule.p").at(10, 40), 0.25, 1e-12);
  EXPECT_NEAR(all.at("schedule.layers.0.w").at(20, 40), 0.75, 1e-12);
  EXPECT_NEAR(all.at("schedule.layers.3.w").at(20, 40), 0, 1e-12);
}

TEST(Schedule, TwoStacksShareWhatDoesNotTellThemApart) {
  EXPECT_EQ(schedules_of_model(tiny("encoder_decoder", "pre_to_post")).size(), 1u);
  const Scheme scheme =
      parse_scheme("mine", "sublayer = \"x + s*f(x)\"\n[constants]\ns = \"t/N\"\n");  // N: the stack at hand
  Graph graph;
  Parameters parameters(graph, DType::f32);
  const Wire x = graph.input("x", {{2, 3, 8}, DType::f32});
  const auto scope = graph.scope("encoder");
  const Stack stack = build_stack(
      parameters, scheme,
      {.branches = transformer_layer(), .layers = 4, .heads = 2, .kind = StackKind::encoder, .other_layers = 2}, x);
  ASSERT_EQ(stack.schedules.size(), 1u);
  EXPECT_EQ(stack.schedules[0].input, "schedule.encoder.s");
  EXPECT_EQ(stack.schedules[0].at(8, 0), 2);
}

TEST(Schedule, OneThatNeedsItselfIsRefused) {
  EXPECT_EQ(test::error_of([] {
              const Scheme scheme = parse_scheme("mine", "sublayer = \"x\"\n[constants]\na = \"b + t\"\nb = \"a\"\n");
              schedules_of(scheme, StackKind::single);
            }),
            "scheme 'mine': the schedule 'a' needs itself");
}

TEST(Schedule, TheStepIsKnownToConstantsAlone) {
  for (const char* formula : {"x + t*f(x)", "x + f(x)/T"}) {
    const std::string error = test::error_of([&] {
      Graph graph;
      build_model(graph, test::tiny("decoder", formula));
    });
    EXPECT_NE(error.find("is known to constants alone"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace norma
