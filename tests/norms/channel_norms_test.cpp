// What is particular to norms over positions.
#include "norms/conformance.h"

namespace norma {
namespace {

using namespace test;

TEST(BatchNorm, KeepsRunningStatistics) {
  Graph graph;
  const Trial trial{.info = &norm("batch"), .rows = 50, .width = 3};
  graph.output("y", trace(graph, trial).y);
  CpuSession session(test::plain_plan(graph));
  fill(session, 1, 4, 2);
  std::ranges::fill(session.tensor<double>("running_mean"), 10.0);
  std::ranges::fill(session.tensor<double>("running_variance"), 1.0);
  double mean = 0, squares = 0;
  for (std::size_t i = 0; i < 50; ++i) mean += session.tensor<double>("x")[i * 3] / 50;
  for (std::size_t i = 0; i < 50; ++i) squares += std::pow(session.tensor<double>("x")[i * 3] - mean, 2);
  session.run();
  EXPECT_NEAR(session.tensor<double>("running_mean")[0], 0.9 * 10 + 0.1 * mean, 1e-12);
  EXPECT_NEAR(session.tensor<double>("running_variance")[0], 0.9 * 1 + 0.1 * squares / 49, 1e-12);
}

Wire evaluated(Graph& g) {
  const NormInfo& info = norm("batch");
  const Wire x = g.input("x", {{7, 5}, DType::f64});
  return apply_norm(info, x, declare_norm(g, info, 5, DType::f64), {.mode = NormMode::evaluate});
}

void make_variance_positive(CpuSession& session) {
  for (double& v : session.tensor<double>("running_variance")) v = 0.5 + v * v;
}

TEST(BatchNorm, EvaluatesWithRunningStatisticsAsConstants) {
  check_gradients([](Graph& g) { return curved_loss_of(evaluated(g)); }, {"x", "gain", "bias"},
                  {.tolerance = 1e-6, .prepare = make_variance_positive});
  check_gradients(
      [](Graph& g) {
        const Wire loss = curved_loss_of(evaluated(g)), wrt[] = {g.find("x")};
        return sum_all(square(differentiate(loss, wrt)[0]));
      },
      {"x", "gain", "bias"}, {.tolerance = 1e-6, .prepare = make_variance_positive});
  Graph graph;
  graph.output("y", evaluated(graph));
  CpuSession session(test::plain_plan(graph));
  fill(session, 2);
  make_variance_positive(session);
  session.run();
  const auto at = [&](const char* name, std::size_t i) { return session.tensor<double>(name)[i]; };
  const double xh = (at("x", 6) - at("running_mean", 1)) / std::sqrt(at("running_variance", 1) + 1e-5);
  EXPECT_NEAR(at("y", 6), at("gain", 1) * xh + at("bias", 1), 1e-12);
}

TEST(BatchNorm, RefusesOneRow) {
  Graph graph;
  const Trial trial{.info = &norm("batch"), .rows = 1, .width = 3};
  EXPECT_NE(error_of([&] { trace(graph, trial); }).find("at least two rows"), std::string::npos);
}

TEST(GroupNorm, OfSingleChannelsIsInstanceNormAndOfOneGroupIsLayerNorm) {
  Graph graph;
  const Wire x = graph.input("x", {{3, 5, 8}, DType::f64});
  graph.output("single", group_norm(x, 8, {}, {}));
  graph.output("instance", instance_norm(x, {}, {}));
  graph.output("whole", group_norm(x, 1, {}, {}));
  graph.output("layer", layer_norm(reshape(x, {3, 40}), {}, {}));
  CpuSession session(test::plain_plan(graph));
  fill(session, 3);
  session.run();
  expect_close(read(session, "single"), read(session, "instance"), 1e-12, "one channel per group");
  expect_close(read(session, "whole"), read(session, "layer"), 1e-12, "one group");
}

TEST(GroupNorm, RefusesGroupsThatDoNotDivide) {
  Graph graph;
  const Wire x = graph.input("x", {{3, 5, 8}, DType::f64});
  EXPECT_NE(error_of([&] { group_norm(x, 3, {}, {}); }).find("8 channels do not divide into 3 groups"),
            std::string::npos);
}

}  // namespace
}  // namespace norma
