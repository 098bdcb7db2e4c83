// nGPT: everything on the unit sphere, and one layer with its logits against the equations of Loshchilov et al. 2024
// written as loops.
#include <cmath>
#include <functional>

#include "models/model_check.h"

namespace norma {
namespace {

constexpr std::size_t T = 3, D = 4, H = 2, W = D / H, F = 3, V = 5;
using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;  // rows

Vector unit(Vector x) {
  double squares = 0;
  for (const double v : x) squares += v * v;
  for (double& v : x) v /= std::sqrt(squares);
  return x;
}

// x W for W [in, out] stored by rows.
Vector times(const Vector& x, std::span<const double> w, std::size_t out) {
  Vector y(out, 0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < out; ++j) y[j] += x[i] * w[i * out + j];
  }
  return y;
}

class Reference {
 public:
  explicit Reference(CpuSession& session) : session_(session) {}

  Matrix logits() {
    Matrix h;
    for (const std::int32_t token : session_.tensor<std::int32_t>("tokens")) {
      const std::span<double> row = weight("embedding.token").subspan(static_cast<std::size_t>(token) * D, D);
      h.emplace_back(row.begin(), row.end());
    }
    h = sublayer(h, "attn", attention(h));
    h = sublayer(h, "ffn", feed_forward(h));
    Matrix z;
    for (const Vector& row : h) {
      z.push_back(times(row, weight("head.weight"), V));
      for (std::size_t j = 0; j < V; ++j) z.back()[j] *= weight("head.gain")[j] * std::sqrt(1.0 * D);
    }
    return z;
  }

 private:
  std::span<double> weight(const std::string& name) { return session_.tensor<double>(name); }

  Matrix sublayer(const Matrix& h, const std::string& name, const Matrix& branch) {
    Matrix out;
    for (std::size_t t = 0; t < T; ++t) {
      const Vector b = unit(branch[t]);
      Vector x(D);
      for (std::size_t i = 0; i < D; ++i) {
        const double alpha = weight("layers.0." + name + ".a")[i] * 0.05 * std::sqrt(1.0 * D);
        x[i] = h[t][i] + std::abs(alpha) * (b[i] - h[t][i]);
      }
      out.push_back(unit(x));
    }
    return out;
  }

  Matrix attention(const Matrix& h) {
    Matrix qkv, context(T, Vector(D, 0)), out;
    for (const Vector& row : h) qkv.push_back(times(row, weight("layers.0.attn.qkv.weight"), 3 * D));
    const auto part = [&](std::size_t t, std::size_t which, std::size_t head) {
      const auto first = qkv[t].begin() + static_cast<std::ptrdiff_t>(which * D + head * W);
      return Vector(first, first + static_cast<std::ptrdiff_t>(W));
    };
    const auto gained = [&](Vector x, std::size_t head) {
      x = unit(std::move(x));
      for (std::size_t i = 0; i < W; ++i) x[i] *= weight("layers.0.attn.qk_gain")[head * W + i] * std::sqrt(1.0 * D);
      return x;
    };
    for (std::size_t head = 0; head < H; ++head) {
      for (std::size_t t = 0; t < T; ++t) {
        const Vector q = gained(part(t, 0, head), head);
        Vector p;
        double total = 0;
        for (std::size_t s = 0; s <= t; ++s) {
          const Vector k = gained(part(s, 1, head), head);
          double score = 0;
          for (std::size_t i = 0; i < W; ++i) score += q[i] * k[i];
          p.push_back(std::exp(std::sqrt(1.0 * W) * score));
          total += p.back();
        }
        for (std::size_t s = 0; s <= t; ++s) {
          for (std::size_t i = 0; i < W; ++i) context[t][head * W + i] += p[s] / total * part(s, 2, head)[i];
        }
      }
    }
    for (const Vector& row : context) out.push_back(times(row, weight("layers.0.attn.out.weight"), D));
    return out;
  }

  Matrix feed_forward(const Matrix& h) {
    Matrix out;
    for (const Vector& row : h) {
      Vector uv = times(row, weight("layers.0.ffn.in.weight"), 2 * F), gated(F);
      for (std::size_t i = 0; i < 2 * F; ++i) uv[i] *= weight("layers.0.ffn.gain")[i] * std::sqrt(1.0 * D);
      for (std::size_t i = 0; i < F; ++i) gated[i] = uv[i] / (1 + std::exp(-uv[i])) * uv[F + i];
      out.push_back(times(gated, weight("layers.0.ffn.out.weight"), D));
    }
    return out;
  }

  CpuSession& session_;
};

TEST(Ngpt, LogitsAreThoseOfTheEquations) {
  ModelConfig config{.layers = 1, .width = D, .heads = H, .hidden = F, .vocabulary = V, .batch = 1, .time = T};
  config.scheme = "ngpt";
  config.activation = Activation::silu;
  config.gated = true;
  config.positions = Positions::none;
  config.dtype = DType::f64;
  Graph graph;
  const Model model = build_model(graph, config, {.logits = true});
  graph.output("logits", model.logits);
  CpuSession session(test::plain_plan(graph));
  initialise(session, model.parameters, 1);
  test::fill_inputs(session, config);
  for (const ParameterSpec& spec : model.parameters) {
    if (spec.role == "learned") test::randomise<double>(session, spec.name, 5, 1, 0.3);
  }
  session.run();
  const Matrix expected = Reference(session).logits();
  for (std::size_t t = 0; t < T; ++t) {
    for (std::size_t j = 0; j < V; ++j)
      EXPECT_NEAR(session.tensor<double>("logits")[t * V + j], expected[t][j], 1e-12) << t << ", " << j;
  }
}

// A sublayer of Hyper-Connections by hand: h = Am^T H, H <- B^T T(h) + Ar^T H, with T(h) = tanh(h).
// Four of six sublayers in one block, with w = 0: the mean of the embedding, the whole block and what follows it.
ModelConfig ngpt() {
  ModelConfig config = test::tiny("decoder", "ngpt", DType::f64);
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
  CpuSession session(test::plain_plan(graph));
  initialise(session, model.parameters, 1);
  test::fill_inputs(session, config);
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
  CpuSession session(test::plain_plan(graph));
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
    constrained += spec.unit != UnitVectors::none ? 1 : 0;
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
  CpuSession session(test::plain_plan(graph));
  initialise(session, model.parameters, 1);
  test::fill_inputs(session, config);
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
