// Scales inside fused norms, norm(a x + b f), and on the gradients that they make: the same bits as without, at every
// instruction set; the derivative; and when they fire.
#include <array>

#include "elementary_backend.h"
#include "norma/graph/sum.h"
#include "norma/norms/fusions.h"
#include "norma/norms/row.h"
#include "norms/conformance.h"

namespace norma {
namespace {

using namespace test;

constexpr std::array kRowNorms = {"layer", "weightless", "rms", "prms", "scale"};

std::vector<Rewrite> with_scales() {
  std::vector<Rewrite> all = norm_fusions();
  for (const Rewrite& rewrite : norm_scale_fusions()) all.push_back(rewrite);
  return all;
}

// A stack of three sublayers over x: how a stream, a norm and a branch meet.
struct Stack {
  const NormInfo& info;
  std::int64_t rows, width;
  DType dtype;

  Wire input(Graph& g) const { return g.input("x", {{rows, width}, dtype}); }
  Wire branch(Graph& g, Wire x, const std::string& name) const {
    return tanh(x * g.parameter(name + ".weight", {{rows, width}, dtype}));
  }
  Wire normed(Graph& g, Wire x, const std::string& name) const {
    const auto scope = g.scope(name);
    return apply_norm(info, x, declare_norm(g, info, width, dtype));
  }
  Wire number(Graph& g, const std::string& name) const { return g.parameter(name, {{1}, dtype}); }
  Wire vector(Graph& g, const std::string& name) const { return g.parameter(name, {{width}, dtype}); }
};

using ScaledBuild = Wire (*)(Graph&, const Stack&);

Wire one_number(Graph& g, const Stack& s) {  // DeepNorm
  Wire x = s.input(g);
  for (const char* l : {"a", "b", "c"}) x = s.normed(g, x * s.number(g, std::string(l) + "s") + s.branch(g, x, l), l);
  return x;
}

Wire two_vectors(Graph& g, const Stack& s) {
  Wire x = s.input(g);
  for (const std::string l : {"a", "b", "c"})
    x = s.normed(g, s.vector(g, l + "s") * x + s.branch(g, x, l) * s.vector(g, l + "t"), l);
  return x;
}

Wire before_the_norm(Graph& g, const Stack& s) {  // LayerScale
  Wire x = s.input(g);
  for (const std::string l : {"a", "b", "c"}) x = x + s.vector(g, l + "s") * s.branch(g, s.normed(g, x, l), l);
  return s.normed(g, x, "final");
}

Wire norm_inside_and_outside(Graph& g, const Stack& s) {  // KEEL
  Wire x = s.input(g);
  for (const std::string l : {"a", "b", "c"})
    x = s.normed(g, s.number(g, l + "s") * x + s.branch(g, s.normed(g, x, l + "1"), l), l + "2");
  return x;
}

Wire second_and_third_of_three(Graph& g, const Stack& s) {
  Wire x = s.input(g);
  for (const std::string l : {"a", "b", "c"}) {
    const Wire terms[] = {x, s.branch(g, x, l + "1") * s.number(g, l + "s"),
                          s.vector(g, l + "t") * s.branch(g, x, l + "2")};
    x = s.normed(g, sum(terms), l);
  }
  return x;
}

struct ScaledOutcome {
  std::map<std::string, std::vector<double>> results;
  std::unordered_map<std::string, int> fired;
  std::size_t kernels = 0;
};

ScaledOutcome run_scaled(ScaledBuild build, const Stack& stack, const std::vector<Rewrite>& rewrites,
                         const Backend& backend = cpu_backend()) {
  Graph graph;
  const Wire y = build(graph, stack);
  Wires wrt = graph.parameters();
  wrt.push_back(graph.find("x"));
  const Wires gradients = differentiate(curved_loss_of(y), wrt);
  graph.output("y", y);
  std::vector<std::string> names = {"y"};
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    names.push_back("d/" + wrt[i].name());
    graph.output(names.back(), gradients[i]);
  }
  ScaledOutcome outcome;
  outcome.fired = fuse(graph, rewrites);
  CpuSession session(test::plain_plan(graph, {}, backend), {.threads = 1});
  fill(session, 1);
  session.run();
  for (const std::string& name : names) outcome.results[name] = read(session, name);
  outcome.kernels = session.plan().steps().size();
  return outcome;
}

struct ScaledCase {
  ScaledBuild build;
  int forward, backward;  // scales that move into norms
};
const ScaledCase kScaledCases[] = {{one_number, 3, 3},
                                   {two_vectors, 6, 6},
                                   {before_the_norm, 3, 3},
                                   {norm_inside_and_outside, 3, 3},
                                   {second_and_third_of_three, 6, 6}};

TEST(ScaledTerms, FuseWithoutChangingABit) {
  for (const char* name : kRowNorms) {
    for (const ScaledCase& c : kScaledCases) {
      // Odd rows and widths, a row that is read in pieces, and rows of one channel.
      for (const auto& [rows, width] : {std::pair{5, 1}, {1, 31}, {37, 33}, {4, 45}, {3, 1057}}) {
        SCOPED_TRACE(fmt::format("{} case {} of {} x {}", name, &c - kScaledCases, rows, width));
        const Stack stack{norm(name), rows, width, DType::f32};
        const ScaledOutcome apart = run_scaled(c.build, stack, norm_fusions()),
                            fused = run_scaled(c.build, stack, with_scales());
        EXPECT_EQ(fused.fired.at("norm_scale"), c.forward);
        EXPECT_EQ(fused.fired.at("norm_backward_scale"), c.backward);
        EXPECT_EQ(fused.kernels + static_cast<std::size_t>(c.forward + c.backward), apart.kernels);
        for (const auto& [result, values] : apart.results) {
          if (width > 1) {
            EXPECT_GT(largest(values), 0) << result;
          }
          EXPECT_EQ(fused.results.at(result), values) << result;
        }
      }
    }
  }
}

TEST(ScaledTerms, AgreeWithTheReferenceComposition) {
  for (const char* name : kRowNorms) {
    for (const ScaledCase& c : kScaledCases) {
      SCOPED_TRACE(fmt::format("{} case {}", name, &c - kScaledCases));
      const Stack stack{norm(name), 7, 33, DType::f64};
      const ScaledOutcome fused = run_scaled(c.build, stack, with_scales());
      const ScaledOutcome elementary = run_scaled(c.build, stack, with_scales(), ElementaryBackend());
      EXPECT_GT(elementary.kernels, fused.kernels);
      for (const auto& [result, values] : elementary.results) {
        ASSERT_GT(largest(values), 0) << result;
        expect_close(fused.results.at(result), values, 1e-11 * (1 + largest(values)), result);
      }
    }
  }
}

// Fused before differentiation: the fused op's own derivative. Fused after it: the scaled gradients.
TEST(ScaledTerms, HaveTheDerivativeOfFiniteDifferences) {
  for (const char* name : kRowNorms) {
    for (const bool early : {true, false}) {
      SCOPED_TRACE(fmt::format("{} {}", name, early ? "early" : "late"));
      check_gradients(
          [&](Graph& g) {
            const Stack stack{norm(name), 5, 9, DType::f64};
            const Wire x = stack.input(g), f = g.input("f", {{5, 9}, DType::f64});
            const Wire sum = x * stack.number(g, "a") + stack.vector(g, "b") * f;
            const Wire both = tanh(sum) * stack.normed(g, sum, "n");
            if (early) {
              EXPECT_EQ(fuse(g, with_scales()).at("norm_scale"), 2);
            }
            return curved_loss_of(both);
          },
          {"x", "f", "a", "b"}, {.tolerance = 1e-6, .fuse = !early});
    }
  }
}

TEST(ScaledTerms, DifferentiateTwice) {
  check_gradients(
      [](Graph& g) {
        const Stack stack{norm("layer"), 4, 7, DType::f64};
        const Wire y = one_number(g, stack), x = g.find("x");
        fuse(g, with_scales());
        const Wire wrt[] = {x};
        const Wire dx = differentiate(curved_loss_of(y), wrt)[0];
        return sum_all(square(dx));
      },
      {"as", "cs", "a.weight"}, {.tolerance = 1e-5});
}

TEST(ScaledTerms, OfAProductThatIsReadElsewhereStayOutside) {
  Graph graph;
  const Type type{{5, 8}, DType::f64};
  const Wire a = graph.input("a", type), b = graph.input("b", type);
  const Wire scaled = a * graph.input("s", {{1}, DType::f64});
  graph.output("y", layer_norm(scaled + b, {}, {}));
  graph.output("scaled", scaled);
  EXPECT_EQ(fuse(graph, with_scales()).at("norm_scale"), 0);
}

TEST(ScaledTerms, AreOneNumberOrOneForEveryChannel) {
  Graph graph;
  const Type type{{5, 8}, DType::f64};
  const Wire a = graph.input("a", type), b = graph.input("b", type);
  graph.output("y", layer_norm(a * graph.input("row", {{5, 1}, DType::f64}) + b * b, {}, {}));
  EXPECT_EQ(fuse(graph, with_scales()).at("norm_scale"), 0);
  const Node node = graph.nodes().back();
  const RowNorm& plain = dynamic_cast<const RowNorm&>(*node.op);
  const RowNorm scaled(plain.definition(), plain.options(), 2, 0b10);
  const Type eps{{1}, DType::f64};
  const std::string message = error_of([&] { scaled.infer(std::vector<Type>{type, type, eps, {{7}, DType::f64}}); });
  EXPECT_NE(message.find("a scale must be one number or [8] but is f64[7]"), std::string::npos) << message;
}

// The gradient that was scaled is not the one that others are added to later.
TEST(ScaledTerms, OfAGradientKeepOutWhatIsAddedAfterwards) {
  Graph graph;
  const Type type{{5, 8}, DType::f64};
  const Wire x = graph.input("x", type), s = graph.input("s", {{1}, DType::f64});
  const Wire wrt[] = {x};
  const Wire dx = differentiate(curved_loss_of(layer_norm(x, {}, {})), wrt)[0];
  graph.output("scaled", dx * s);
  EXPECT_EQ(fuse(graph, norm_scale_fusions()).at("norm_backward_scale"), 1);
  graph.output("total", dx + x);
  EXPECT_EQ(fuse(graph, norm_fusions()).at("norm_backward_add"), 0);
  CpuSession session(test::plain_plan(graph));
  fill(session, 3);
  session.run();
  const std::vector<double> scaled = read(session, "scaled"), total = read(session, "total"), in = read(session, "x");
  const double factor = read(session, "s")[0];
  for (std::size_t i = 0; i < in.size(); ++i) EXPECT_NEAR(scaled[i], factor * (total[i] - in[i]), 1e-12);
}

}  // namespace
}  // namespace norma
