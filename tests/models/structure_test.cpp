// Schemes with more than one residual stream or none of the usual norms, each against what its paper states.
#include <cmath>

#include "models/model_check.h"
#include "norma/ops/elementwise.h"
#include "norma/schemes/trace.h"

namespace norma {
namespace {

using test::fill_inputs;
using test::tiny;

// The hidden state of a model with its initial weights.
std::vector<double> hidden_of(const ModelConfig& config, std::uint64_t seed = 1) {
  Graph graph;
  const Model model = build_model(graph, config);
  graph.output("hidden", model.hidden);
  Session session(compile(graph));
  initialise(session, model.parameters, seed);
  fill_inputs(session, config);
  session.run();
  return {session.tensor<double>("hidden").begin(), session.tensor<double>("hidden").end()};
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

ModelConfig wide_embedding(Family family, const std::string& scheme) {
  ModelConfig config = tiny(family, scheme, DType::f64);
  config.embedding_std = 1;
  return config;
}

TEST(HyperConnections, StartAsPreLn) {
  for (const Family family : {Family::decoder, Family::encoder, Family::encoder_decoder}) {
    const std::vector<double> pre = hidden_of(wide_embedding(family, "pre"));
    for (const char* scheme : {"hc_static", "hc_dynamic"}) {
      // The final norm reads four times the stream, so its eps of 1e-5 weighs 16 times less.
      EXPECT_LT(largest_difference(hidden_of(wide_embedding(family, scheme)), pre), 2e-5) << scheme;
    }
  }
}

TEST(HyperConnections, StreamsAreExactlyThoseOfPreLnBeforeTheFinalNorm) {
  const auto streams = [](const char* scheme) {
    const ModelConfig config = wide_embedding(Family::decoder, scheme);
    Graph graph;
    const Model model = build_model(graph, config);
    for (std::size_t i = 0; i < model.sites.size(); ++i)
      graph.output("x" + std::to_string(i), model.sites[i].stream_out);
    Session session(compile(graph));
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
  const ModelConfig config = wide_embedding(Family::decoder, "hc_static");
  Graph graph;
  const Model model = build_model(graph, config);
  graph.output("hidden", model.hidden);
  Session session(compile(graph));
  initialise(session, model.parameters, 1);
  fill_inputs(session, config);
  session.tensor<double>("layers.0.ffn.ar")[1] = 0.5;
  session.tensor<double>("layers.1.attn.b")[2] = 0.25;
  session.run();
  const std::vector<double> moved(session.tensor<double>("hidden").begin(), session.tensor<double>("hidden").end());
  EXPECT_GT(largest_difference(moved, hidden_of(config)), 1e-3);
}

// A sublayer of Hyper-Connections by hand: h = Am^T H, H <- B^T T(h) + Ar^T H, with T(h) = tanh(h).
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
  Session session(compile(graph));
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
  Session session(compile(graph));
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
  ModelConfig config = wide_embedding(Family::decoder, "mhc");
  Graph graph;
  const Model model = build_model(graph, config);
  graph.output("hidden", model.hidden);
  Session session(compile(graph));
  initialise(session, model.parameters, 1);
  fill_inputs(session, config);
  for (const ParameterSpec& spec : model.parameters) {
    if (spec.name.ends_with(".s1") || spec.name.ends_with(".s2") || spec.name.ends_with(".s3"))
      session.tensor<double>(spec.name)[0] = 0;  // nothing dynamic
  }
  session.run();
  const std::vector<double> still(session.tensor<double>("hidden").begin(), session.tensor<double>("hidden").end());
  EXPECT_LT(largest_difference(still, hidden_of(wide_embedding(Family::decoder, "pre"))), 2e-5);
}

TEST(AttentionResiduals, StartAsTheMeanOfAllThatCameBefore) {
  const ModelConfig config = wide_embedding(Family::decoder, "attnres");
  Graph graph;
  const Model model = build_model(graph, config);
  ASSERT_EQ(model.sites.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    graph.output("x" + std::to_string(i), model.sites[i].stream_out);
    graph.output("f" + std::to_string(i), model.sites[i].branch);
  }
  Session session(compile(graph));
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
  ModelConfig blocks = wide_embedding(Family::decoder, "attnres_block");  // six sublayers in at most eight blocks
  EXPECT_EQ(hidden_of(blocks), hidden_of(wide_embedding(Family::decoder, "attnres")));
  blocks.constants = {{"blocks", 2}};
  EXPECT_LT(largest_difference(hidden_of(blocks), hidden_of(wide_embedding(Family::decoder, "attnres"))), 1e-3)
      << "while all weights are equal, a norm's eps alone tells sums of blocks from sums of everything";
}

// Four of six sublayers in one block, with w = 0: the mean of the embedding, the whole block and what follows it.
TEST(AttentionResiduals, BlocksAreSums) {
  ModelConfig config = wide_embedding(Family::decoder, "attnres_block");
  config.constants = {{"s", 4}};
  Graph graph;
  const Model model = build_model(graph, config);
  graph.output("embedding", model.sites[0].stream_in);
  for (std::size_t i = 0; i < 6; ++i) graph.output("f" + std::to_string(i), model.sites[i].branch);
  graph.output("x2", model.sites[2].stream_out);
  graph.output("x5", model.sites[5].stream_out);
  Session session(compile(graph));
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
  Session session(compile(graph));
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

ModelConfig ngpt() {
  ModelConfig config = tiny(Family::decoder, "ngpt", DType::f64);
  config.gated = true;
  config.activation = Activation::silu;
  config.positions = Positions::rope;
  config.heads = 2;
  return config;
}

TEST(Ngpt, EveryStreamIsOfUnitLength) {
  const ModelConfig config = ngpt();
  Graph graph;
  const Model model = build_model(graph, config);
  for (std::size_t i = 0; i < model.sites.size(); ++i) {
    graph.output("in" + std::to_string(i), model.sites[i].stream_in);
    graph.output("out" + std::to_string(i), model.sites[i].stream_out);
  }
  Session session(compile(graph));
  initialise(session, model.parameters, 1);
  fill_inputs(session, config);
  session.run();
  for (const std::string name : {"in0", "out0", "out1", "out5"}) {
    const std::span<double> x = session.tensor<double>(name);
    for (std::size_t row = 0; row < x.size() / 24; ++row) {
      double squares = 0;
      for (const double v : x.subspan(row * 24, 24)) squares += v * v;
      ASSERT_NEAR(squares, 1, 1e-12) << name << " row " << row;
    }
  }
}

TEST(Ngpt, WeightsStartOnTheSphereAlongTheEmbedding) {
  const ModelConfig config = ngpt();
  Graph graph;
  const Model model = build_model(graph, config);
  graph.output("loss", model.loss);
  Session session(compile(graph));
  initialise(session, model.parameters, 1);
  const auto length = [&](const char* name, std::size_t first, std::size_t stride, std::size_t count) {
    const std::span<double> w = session.tensor<double>(name);
    double squares = 0;
    for (std::size_t i = 0; i < count; ++i) squares += w[first + i * stride] * w[first + i * stride];
    return std::sqrt(squares);
  };
  const std::size_t d = 24;
  EXPECT_NEAR(length("embedding.token", 2 * d, 1, d), 1, 1e-12) << "a row";
  EXPECT_NEAR(length("head.weight", 5, 17, d), 1, 1e-12) << "a column";
  EXPECT_NEAR(length("layers.0.attn.qkv.weight", 40, 3 * d, d), 1, 1e-12) << "a column";
  EXPECT_NEAR(length("layers.0.attn.out.weight", 3 * d, 1, d), 1, 1e-12) << "a row";
  EXPECT_NEAR(length("layers.0.ffn.in.weight", 100, 8 * d, d), 1, 1e-12) << "a column";
  EXPECT_NEAR(length("layers.0.ffn.out.weight", 90 * d, 1, d), 1, 1e-12) << "a row";
  int constrained = 0;
  for (const ParameterSpec& spec : model.parameters) {
    EXPECT_FALSE(spec.name.ends_with(".bias")) << "nGPT has no biases";
    EXPECT_NE(spec.role, "norm") << "and no norms";
    EXPECT_EQ(spec.decay, 0) << "and no weight decay: " << spec.name;
    constrained += spec.unit != Unit::none ? 1 : 0;
  }
  EXPECT_EQ(constrained, 2 + 3 * 4);
  EXPECT_NEAR(session.tensor<double>("layers.0.attn.a")[0], 1 / std::sqrt(24.0), 1e-12) << "stored";
  EXPECT_NEAR(session.tensor<double>("layers.0.attn.qk_gain")[0], 1 / std::sqrt(24.0), 1e-12);
  EXPECT_EQ(session.tensor<double>("layers.0.ffn.gain")[0], 1);
  EXPECT_EQ(session.tensor<double>("layers.0.ffn.gain").size(), 2u * 96);
  EXPECT_NEAR(session.tensor<double>("head.gain")[0], 1 / std::sqrt(24.0), 1e-12);
}

// The whole sublayer of the paper by hand: h <- u(h + |alpha| (u(F(h)) - h)).
TEST(Ngpt, SublayerMovesByAlphaTowardsTheBranch) {
  const ModelConfig config = ngpt();
  Graph graph;
  const Model model = build_model(graph, config);
  const SublayerSite& site = model.sites[3];
  graph.output("in", site.stream_in);
  graph.output("branch", site.branch);
  graph.output("out", site.stream_out);
  Session session(compile(graph));
  initialise(session, model.parameters, 1);
  fill_inputs(session, config);
  test::randomise<double>(session, "layers.1.ffn.a");
  session.run();
  const std::span<double> a = session.tensor<double>("layers.1.ffn.a");
  const double factor = 0.05 * std::sqrt(24.0);
  for (std::size_t row = 0; row < 36; ++row) {
    const auto in = session.tensor<double>("in").subspan(row * 24, 24),
               branch = session.tensor<double>("branch").subspan(row * 24, 24),
               out = session.tensor<double>("out").subspan(row * 24, 24);
    double length = 0, moved_length = 0;
    for (const double v : branch) length += v * v;
    std::vector<double> moved(24);
    for (std::size_t i = 0; i < 24; ++i) {
      moved[i] = in[i] + std::abs(a[i] * factor) * (branch[i] / std::sqrt(length) - in[i]);
      moved_length += moved[i] * moved[i];
    }
    for (std::size_t i = 0; i < 24; ++i) ASSERT_NEAR(out[i], moved[i] / std::sqrt(moved_length), 1e-12);
  }
}

}  // namespace
}  // namespace norma
