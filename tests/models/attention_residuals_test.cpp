// Attention Residuals, over everything and over blocks, against what their paper states.
#include <cmath>

#include "models/model_check.h"
#include "norma/schemes/trace.h"

namespace norma {
namespace {

using test::fill_inputs;
using test::hidden_of;
using test::largest_difference;
using test::wide_embedding;

TEST(AttentionResiduals, StartAsTheMeanOfAllThatCameBefore) {
  const ModelConfig config = wide_embedding("decoder", "attnres");
  Graph graph;
  const Model model = build_model(graph, config);
  ASSERT_EQ(model.sites.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    graph.output("x" + std::to_string(i), model.sites[i].stream_out);
    graph.output("f" + std::to_string(i), model.sites[i].branch);
  }
  CpuSession session(test::plain_plan(graph));
  initialise(session, model.parameters, 1);
  fill_inputs(session, config);
  session.run();
  std::vector<double> sum(session.tensor<double>("x0").begin(), session.tensor<double>("x0").end());  // the embedding
  for (std::size_t k = 1; k < 6; ++k) {
    const std::span<double> branch = session.tensor<double>("f" + std::to_string(k - 1));
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += branch[i];
    const std::span<double> x = session.tensor<double>("x" + std::to_string(k));
    for (std::size_t i = 0; i < sum.size(); ++i) ASSERT_NEAR(x[i], sum[i] / static_cast<double>(k + 1), 1e-12);
  }
}

TEST(AttentionResiduals, BlocksOfOneSublayerAreTheFullForm) {
  ModelConfig blocks = wide_embedding("decoder", "attnres_block");  // six sublayers in at most eight blocks
  EXPECT_EQ(hidden_of(blocks), hidden_of(wide_embedding("decoder", "attnres")));
  blocks.constants = {{"blocks", 2}};
  EXPECT_LT(largest_difference(hidden_of(blocks), hidden_of(wide_embedding("decoder", "attnres"))), 1e-3)
      << "while all weights are equal, a norm's eps alone tells sums of blocks from sums of everything";
}

TEST(AttentionResiduals, BlocksAreSums) {
  ModelConfig config = wide_embedding("decoder", "attnres_block");
  config.constants = {{"s", 4}};
  Graph graph;
  const Model model = build_model(graph, config);
  graph.output("embedding", model.sites[0].stream_in);
  for (std::size_t i = 0; i < 6; ++i) graph.output("f" + std::to_string(i), model.sites[i].branch);
  graph.output("x2", model.sites[2].stream_out);
  graph.output("x5", model.sites[5].stream_out);
  CpuSession session(test::plain_plan(graph));
  initialise(session, model.parameters, 1);
  fill_inputs(session, config);
  session.run();
  const auto at = [&](const std::string& name, std::size_t i) { return session.tensor<double>(name)[i]; };
  for (std::size_t i = 0; i < session.tensor<double>("embedding").size(); ++i) {
    const double e = at("embedding", i), early = at("f0", i) + at("f1", i);
    ASSERT_NEAR(at("x2", i), (e + early) / 2, 1e-12);
    ASSERT_NEAR(at("x5", i), (e + early + at("f2", i) + at("f3", i) + at("f4", i)) / 3, 1e-12);
  }
}

TEST(AttentionResiduals, WeighByRmsNormedValues) {
  constexpr std::size_t d = 3;
  Graph graph;
  const Wire values = graph.input("V", {{1, 1, 2, d}, DType::f64}), w = graph.input("w", {{d}, DType::f64});
  Surroundings around{.numbers = {}, .wires = {{"V", values}, {"w", w}}, .branches = {}, .norm = nullptr};
  trace(parse_formula("weigh(softmax(dot(rms(V), w)), V)"), around);
  graph.output("h", around.wires.at("x"));
  CpuSession session(test::plain_plan(graph));
  test::randomise_all(session);
  session.run();
  const std::span<double> v = session.tensor<double>("V"), weight = session.tensor<double>("w");
  double score[2], total = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    double squares = 0, product = 0;
    for (std::size_t j = 0; j < d; ++j) squares += v[i * d + j] * v[i * d + j];
    for (std::size_t j = 0; j < d; ++j) product += weight[j] * v[i * d + j] / std::sqrt(squares / d + 1e-6);
    score[i] = std::exp(product);
    total += score[i];
  }
  for (std::size_t j = 0; j < d; ++j) {
    const double expected = (score[0] * v[j] + score[1] * v[d + j]) / total;
    EXPECT_NEAR(session.tensor<double>("h")[j], expected, 1e-12);
  }
}

}  // namespace
}  // namespace norma
