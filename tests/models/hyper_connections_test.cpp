// Hyper-Connections and their manifold-constrained form, against what their papers state.
#include <cmath>

#include "models/model_check.h"
#include "norma/ops/elementwise.h"
#include "norma/schemes/trace.h"

namespace norma {
namespace {

using test::fill_inputs;
using test::hidden_of;
using test::largest_difference;
using test::wide_embedding;

TEST(HyperConnections, StartAsPreLn) {
  for (const Family family : {"decoder", "encoder", "encoder_decoder"}) {
    const std::vector<double> pre = hidden_of(wide_embedding(family, "pre"));
    for (const char* scheme : {"hc_static", "hc_dynamic"}) {
      // The final norm reads four times the stream, so its eps of 1e-5 weighs 16 times less.
      EXPECT_LT(largest_difference(hidden_of(wide_embedding(family, scheme)), pre), 2e-5) << scheme;
    }
  }
}

TEST(HyperConnections, StreamsAreExactlyThoseOfPreLnBeforeTheFinalNorm) {
  const auto streams = [](const char* scheme) {
    const ModelConfig config = wide_embedding("decoder", scheme);
    Graph graph;
    const Model model = build_model(graph, config);
    for (std::size_t i = 0; i < model.sites.size(); ++i)
      graph.output("x" + std::to_string(i), model.sites[i].stream_out);
    CpuSession session(test::plain_plan(graph));
    initialise(session, model.parameters, 1);
    fill_inputs(session, config);
    session.run();
    std::vector<std::vector<double>> all;
    for (std::size_t i = 0; i < model.sites.size(); ++i) {
      const std::span<double> x = session.tensor<double>("x" + std::to_string(i));
      all.emplace_back(x.begin(), x.end());
    }
    return all;
  };
  EXPECT_EQ(streams("hc_static"), streams("pre")) << "every bit: sums of four equal numbers are exact";
}

TEST(HyperConnections, MixersMakeADifferenceOnceTheyMove) {
  const ModelConfig config = wide_embedding("decoder", "hc_static");
  Graph graph;
  const Model model = build_model(graph, config);
  graph.output("hidden", model.hidden);
  CpuSession session(test::plain_plan(graph));
  initialise(session, model.parameters, 1);
  fill_inputs(session, config);
  session.tensor<double>("layers.0.ffn.ar")[1] = 0.5;
  session.tensor<double>("layers.1.attn.b")[2] = 0.25;
  session.run();
  const std::vector<double> moved(session.tensor<double>("hidden").begin(), session.tensor<double>("hidden").end());
  EXPECT_GT(largest_difference(moved, hidden_of(config)), 1e-3);
}

TEST(HyperConnections, FormulaIsThatOfThePaper) {
  constexpr std::size_t c = 3, d = 2;
  Graph graph;
  const Wire streams = graph.input("H", {{1, 1, c, d}, DType::f64});
  const Wire am = graph.input("am", {{c}, DType::f64}), b = graph.input("b", {{c}, DType::f64});
  const Wire ar = graph.input("ar", {{c, c}, DType::f64});
  Surroundings around{.numbers = {{"c", 3}},
                      .wires = {{"H", streams}, {"am", am}, {"ar", ar}, {"b", b}, {"x", streams}},
                      .branches = {{"f", [](Wire in, const BranchOptions&) { return tanh(in); }}},
                      .norm = nullptr};
  trace(parse_formula("y = f(weigh(am, H)); H = mix(transpose(ar), H) + spread(b, y); x = sum(H)/c"), around);
  graph.output("H'", around.wires.at("H"));
  graph.output("x", around.wires.at("x"));
  CpuSession session(test::plain_plan(graph));
  test::randomise_all(session);
  session.run();
  const auto H = session.tensor<double>("H"), m = session.tensor<double>("am"), r = session.tensor<double>("ar"),
             w = session.tensor<double>("b"), result = session.tensor<double>("H'");
  for (std::size_t channel = 0; channel < d; ++channel) {
    double h = 0, mean = 0;
    for (std::size_t i = 0; i < c; ++i) h += m[i] * H[i * d + channel];
    for (std::size_t j = 0; j < c; ++j) {
      double expected = w[j] * std::tanh(h);
      for (std::size_t i = 0; i < c; ++i) expected += r[i * c + j] * H[i * d + channel];
      EXPECT_NEAR(result[j * d + channel], expected, 1e-12);
      mean += expected / 3;
    }
    EXPECT_NEAR(session.tensor<double>("x")[channel], mean, 1e-12);
  }
}

TEST(Mhc, MixersAreDoublyStochastic) {
  constexpr std::int64_t c = 4;
  Graph graph;
  const Wire raw = graph.input("raw", {{2, 5, c, c}, DType::f64});
  Surroundings around{.numbers = {}, .wires = {{"x", raw}}, .branches = {}, .norm = nullptr};
  trace(parse_formula("sinkhorn(x, 20)"), around);
  graph.output("mixer", around.wires.at("x"));
  CpuSession session(test::plain_plan(graph));
  test::randomise_all(session);
  session.run();
  const std::span<double> m = session.tensor<double>("mixer"), given = session.tensor<double>("raw");
  for (std::size_t matrix = 0; matrix < 10; ++matrix) {
    // Columns, then rows, divided by their sums twenty times, starting from exp.
    double expected[c][c];
    for (std::size_t i = 0; i < c; ++i) {
      for (std::size_t j = 0; j < c; ++j) expected[i][j] = std::exp(given[(matrix * c + i) * c + j]);
    }
    for (int round = 0; round < 20; ++round) {
      for (std::size_t j = 0; j < c; ++j) {
        double sum = 0;
        for (std::size_t i = 0; i < c; ++i) sum += expected[i][j];
        for (std::size_t i = 0; i < c; ++i) expected[i][j] /= sum;
      }
      for (auto& row : expected) {
        double sum = 0;
        for (const double v : row) sum += v;
        for (double& v : row) v /= sum;
      }
    }
    for (std::size_t i = 0; i < c; ++i) {
      double row = 0, column = 0;
      for (std::size_t j = 0; j < c; ++j) {
        EXPECT_NEAR(m[(matrix * c + i) * c + j], expected[i][j], 1e-13);
        EXPECT_GT(m[(matrix * c + i) * c + j], 0);
        row += m[(matrix * c + i) * c + j];
        column += m[(matrix * c + j) * c + i];
      }
      EXPECT_NEAR(row, 1, 1e-13) << "rows are divided last";
      EXPECT_NEAR(column, 1, 1e-4) << "columns nearly, after 20 rounds";
    }
  }
}

TEST(Mhc, StartsNearPreLnBecauseItsCopiesAreEqual) {
  ModelConfig config = wide_embedding("decoder", "mhc");
  Graph graph;
  const Model model = build_model(graph, config);
  graph.output("hidden", model.hidden);
  CpuSession session(test::plain_plan(graph));
  initialise(session, model.parameters, 1);
  fill_inputs(session, config);
  for (const ParameterSpec& spec : model.parameters) {
    if (spec.name.ends_with(".s1") || spec.name.ends_with(".s2") || spec.name.ends_with(".s3"))
      session.tensor<double>(spec.name)[0] = 0;  // nothing dynamic
  }
  session.run();
  const std::vector<double> still(session.tensor<double>("hidden").begin(), session.tensor<double>("hidden").end());
  EXPECT_LT(largest_difference(still, hidden_of(wide_embedding("decoder", "pre"))), 2e-5);
}

}  // namespace
}  // namespace norma
