// One layer of nGPT, logits included, against the equations of Loshchilov et al. 2024 written as loops.
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
  explicit Reference(Session& session) : session_(session) {}

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

  Session& session_;
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
  Session session(compile(graph));
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

}  // namespace
}  // namespace norma
