// What is particular to each norm along the row.
#include "norma/norms/fusions.h"
#include "norms/conformance.h"

namespace norma {
namespace {

using namespace test;

// y of one norm for x given by a function of the index.
std::vector<double> normalised(const std::string& name, std::int64_t rows, std::int64_t width,
                               const std::function<double(std::int64_t)>& x) {
  Graph graph;
  const Trial trial{.info = &norm(name), .rows = rows, .width = width};
  graph.output("y", trace(graph, trial).y);
  CpuSession session(test::plain_plan(graph));
  fill(session, 1);
  const std::span<double> values = session.tensor<double>("x");
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = x(static_cast<std::int64_t>(i));
  session.run();
  return read(session, "y");
}

double wave(std::int64_t i) { return std::sin(1.7 * static_cast<double>(i)) * (1 + static_cast<double>(i % 5)); }

TEST(LayerNorm, IgnoresShiftAndScale) {
  const std::vector<double> y = normalised("layer", 4, 50, wave);
  expect_close(normalised("layer", 4, 50, [](std::int64_t i) { return 30 * wave(i) + 7; }), y, 1e-4, "y");
}

TEST(LayerNorm, WithoutParametersHasMeanZeroAndNormSqrtWidth) {
  const std::vector<double> y = normalised("weightless", 1, 50, [](std::int64_t i) { return 1e3 * wave(i) + 5; });
  double sum = 0, squares = 0;
  for (const double v : y) sum += v, squares += v * v;
  EXPECT_NEAR(sum, 0, 1e-10);
  EXPECT_NEAR(squares, 50, 1e-6);
}

TEST(RmsNorm, IgnoresScaleButNotShift) {
  const std::vector<double> y = normalised("rms", 4, 50, wave);
  expect_close(normalised("rms", 4, 50, [](std::int64_t i) { return 30 * wave(i); }), y, 1e-5, "y");
  EXPECT_GT(std::abs(normalised("rms", 4, 50, [](std::int64_t i) { return wave(i) + 7; })[3] - y[3]), 1e-2);
}

TEST(PrmsNorm, CountsLeadingChannelsOnly) {
  // 3 of 50 channels count, so changing a later one changes only that one.
  const std::vector<double> y = normalised("prms", 1, 50, wave);
  const std::vector<double> z = normalised("prms", 1, 50, [](std::int64_t i) { return i == 40 ? 100 : wave(i); });
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i] == z[i], i != 40) << i;
}

TEST(PrmsNorm, RefusesAFractionOutsideItsRange) {
  Graph graph;
  const Wire x = graph.input("x", {{3, 8}, DType::f32});
  EXPECT_NE(error_of([&] { prms_norm(x, {}, 1.5); }).find("(0, 1]"), std::string::npos);
}

// Some rows are longer than eps and some shorter; the latter have no pull towards the sphere.
TEST(ScaleNorm, DerivativesOfShortRowsAreThoseOfAFactor) {
  for (const double eps : {1.0, 3.2, 100.0}) {
    SCOPED_TRACE(eps);
    check_gradients(
        [&](Graph& g) {
          const Wire x = g.input("x", {{7, 9}, DType::f64});
          return curved_loss_of(scale_norm(x, g.parameter("g0", {{1}, DType::f64}), eps));
        },
        {"x", "g0"}, {.tolerance = 1e-6});
  }
}

TEST(ScaleNorm, OutputHasLengthG0AndShortRowsAreOnlyMultiplied) {
  Graph graph;
  const Wire x = graph.input("x", {{2, 20}, DType::f64});
  graph.output("y", scale_norm(x, graph.parameter("g0", {{1}, DType::f64}), 1e-2));
  CpuSession session(test::plain_plan(graph));
  session.tensor<double>("g0")[0] = 3;
  for (std::size_t i = 0; i < 40; ++i) {
    session.tensor<double>("x")[i] = wave(static_cast<std::int64_t>(i)) * (i < 20 ? 1 : 1e-6);
  }
  session.run();
  const std::span<double> y = session.tensor<double>("y");
  double squares = 0;
  for (std::size_t i = 0; i < 20; ++i) squares += y[i] * y[i];
  EXPECT_NEAR(std::sqrt(squares), 3, 1e-12);
  EXPECT_NEAR(y[25], 3 * session.tensor<double>("x")[25] / 1e-2, 1e-12);
}

TEST(RowNorm, EveryCombinationOfGainAndBiasHasGradients) {
  for (const bool gain : {false, true}) {
    for (const bool bias : {false, true}) {
      std::vector<std::string> names = {"x"};
      if (gain) names.push_back("gain");
      if (bias) names.push_back("bias");
      check_gradients(
          [&](Graph& g) {
            const Type vector{{9}, DType::f64};
            const Wire x = g.input("x", {{4, 9}, DType::f64});
            return curved_loss_of(layer_norm(x, gain ? g.parameter("gain", vector) : Wire(),
                                             bias ? g.parameter("bias", vector) : Wire()));
          },
          names, {.tolerance = 1e-6});
    }
  }
}

TEST(RowNorm, DifferentiatesByEpsilon) {
  check_gradients(
      [](Graph& g) {
        const Wire eps = exp(g.parameter("log_eps", {{1}, DType::f64}));
        return curved_loss_of(rms_norm(g.input("x", {{4, 9}, DType::f64}), {}, eps));
      },
      {"log_eps", "x"}, {.tolerance = 1e-6});
}

TEST(RowNorm, ZeroGainStillHasItsGradient) {
  check_gradients(
      [](Graph& g) {
        const Wire gain = g.parameter("gain", {{9}, DType::f64});
        return curved_loss_of(layer_norm(g.input("x", {{4, 9}, DType::f64}), gain, {}) +
                              g.input("shift", {{4, 9}, DType::f64}));
      },
      {"gain"},
      {.tolerance = 1e-6, .prepare = [](CpuSession& s) { std::ranges::fill(s.tensor<double>("gain"), 0.0); }});
}

// norm(a + b), where both may have a scale of one.
std::vector<float> norm_of_sum(const NormInfo& info, std::int64_t width, bool scaled) {
  Graph g;
  const Type type{{5, width}, DType::f32}, one{{1}, DType::f32};
  const Wire a = g.input("a", type), b = g.input("b", type);
  const Wire sum = scaled ? a * g.input("s", one) + b * g.input("t", one) : a + b;
  g.output("y", apply_norm(info, sum, declare_norm(g, info, width)));
  g.output("sum", sum);
  std::vector<Rewrite> rewrites = norm_fusions();
  for (const Rewrite& rewrite : norm_scale_fusions()) rewrites.push_back(rewrite);
  CpuSession session(test::plain_plan(g, {.rewrites = rewrites}));
  EXPECT_EQ(session.plan().steps().size(), 1u) << "not fused";
  test::randomise_all(session);
  if (scaled) session.tensor<float>("s")[0] = session.tensor<float>("t")[0] = 1;
  session.run();
  const std::span<const float> y = session.tensor<float>("y");
  return {y.begin(), y.end()};
}

// Rows of a few whole vectors have a kernel of their own; sums with scales take the one for any row.
TEST(RowNorm, ShortRowsHaveTheBitsOfTheKernelForAnyRow) {
  for (const std::string name : {"layer", "weightless", "rms", "scale"}) {
    for (const std::int64_t width : {4, 8, 12, 16, 24, 32, 48, 64, 80}) {
      SCOPED_TRACE(fmt::format("{} of width {}", name, width));
      EXPECT_EQ(norm_of_sum(norm(name), width, false), norm_of_sum(norm(name), width, true));
    }
  }
}

// Partial sums of the gradients by gain and bias add up to them, those of the total to its sums over rows.
TEST(RowNorm, LinesOfGradientsAddUp) {
  Graph g;
  const Wire x = g.input("x", {{5, 6}, DType::f64}), gain = g.parameter("gain", {{6}, DType::f64});
  const Wire bias = g.parameter("bias", {{6}, DType::f64});
  const Wire wrt[] = {x, gain, bias};
  const Wires whole = differentiate(sum_all(square(layer_norm(x, gain, bias))), wrt);
  const auto found = std::find_if(g.nodes().begin(), g.nodes().end(),
                                  [](const Node& node) { return node.op->name() == "layer_norm_backward"; });
  ASSERT_NE(found, g.nodes().end());
  Wires in;
  for (const int id : found->inputs) in.push_back(Wire(&g, id));
  const Wires lines = g.apply(dynamic_cast<const RowNormBackward&>(*found->op).with_lines(4, TotalSums::lines), in);
  EXPECT_EQ(lines[1].shape(), (Shape{4, 6}));
  const char* const names[] = {"dx", "dgain", "dbias"};
  for (std::size_t k = 0; k < 3; ++k) {
    g.output(names[k], whole[k]);
    g.output(std::string("lines of ") + names[k], k == 0 ? lines[0] : sum_to(lines[k], {6}));
  }
  g.output("total", sum_to(whole[0], {6}));
  g.output("lines of total", sum_to(lines[3], {6}));
  CpuSession session(test::plain_plan(g));
  fill(session, 1);
  session.run();
  for (const char* name : {"dx", "dgain", "dbias", "total"}) {
    const std::vector<double> expected = read(session, name);
    EXPECT_GT(std::abs(expected[0]), 0) << name;
    expect_close(read(session, std::string("lines of ") + name), expected, 1e-13, name);
  }
}

TEST(RowNorm, SaysWhatDoesNotFit) {
  Graph graph;
  const Wire x = graph.input("x", {{3, 8}, DType::f32}), gain = graph.parameter("gain", {{7}, DType::f32});
  const std::string message = error_of([&] { layer_norm(x, gain, {}); });
  EXPECT_NE(message.find("gain must be f32[8] but is f32[7]"), std::string::npos) << message;
}

}  // namespace
}  // namespace norma
