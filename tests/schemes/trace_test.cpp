// Functions of wires: shapes that fit, and mistakes with a caret.
#include "norma/schemes/trace.h"

#include "check.h"

namespace norma {
namespace {

// Traces a formula over x [2, 3, 4], H [2, 3, 5, 4], w [5] and A [5, 5]; returns the shape of the result.
std::string shape_of(const char* formula) {
  Graph graph;
  const auto input = [&](const char* name, const Shape& shape) { return graph.input(name, {shape, DType::f64}); };
  Surroundings around{.numbers = {{"c", 5}},
                      .wires = {{"x", input("x", {2, 3, 4})},
                                {"H", input("H", {2, 3, 5, 4})},
                                {"w", input("w", {5})},
                                {"v", input("v", {4})},
                                {"A", input("A", {5, 5})}},
                      .branches = {},
                      .norm = nullptr};
  trace(parse_formula(formula), around);
  return around.wires.at("x").shape().str();
}

TEST(Trace, StreamsOfSeveralCopies) {
  EXPECT_EQ(shape_of("copies(x, c)"), "[2, 3, 5, 4]");
  EXPECT_EQ(shape_of("append(H, x)"), "[2, 3, 6, 4]");
  EXPECT_EQ(shape_of("sum(H)"), "[2, 3, 4]");
  EXPECT_EQ(shape_of("weigh(w, H)"), "[2, 3, 4]");
  EXPECT_EQ(shape_of("weigh(dot(H, v), H)"), "[2, 3, 4]");
  EXPECT_EQ(shape_of("mix(A, H)"), "[2, 3, 5, 4]");
  EXPECT_EQ(shape_of("mix(sinkhorn(A, 3), H) + spread(w, x)"), "[2, 3, 5, 4]");
  EXPECT_EQ(shape_of("spread(dot(H, v), x)"), "[2, 3, 5, 4]");
  EXPECT_EQ(shape_of("flat(H)"), "[2, 3, 20]");
  EXPECT_EQ(shape_of("matrix(v)"), "[2, 2]");
  EXPECT_EQ(shape_of("x/sqrt(var(x))*sqrt(c)"), "[2, 3, 4]");
}

TEST(Trace, MistakesAreShownWithACaret) {
  const auto error = [](const char* formula) { return test::error_of([&] { shape_of(formula); }); };
  EXPECT_EQ(error("x + sum(x)"),
            "expected a stream of several copies [batch, time, copies, d], not [2, 3, 4]\n"
            "  x + sum(x)\n"
            "      ^^^^^^");
  EXPECT_EQ(error("weigh(v, H)"),
            "expected 5 numbers, once or for each of 6 tokens, not [4]\n"
            "  weigh(v, H)\n"
            "  ^^^^^^^^^^^");
  EXPECT_EQ(error("copies(x, x)"),
            "this is a wire; expected a number\n"
            "  copies(x, x)\n"
            "            ^");
  EXPECT_EQ(error("copies(x, 1.5)"),
            "expected a whole number from 1 to 4096, not 1.5\n"
            "  copies(x, 1.5)\n"
            "  ^^^^^^^^^^^^^^");
  EXPECT_EQ(error("weigh(w)"),
            "weigh takes 2 arguments but 1 was given\n"
            "  weigh(w)\n"
            "  ^^^^^^^^");
  EXPECT_EQ(error("matrix(w)"),
            "5 numbers are no square matrix\n"
            "  matrix(w)\n"
            "  ^^^^^^^^^");
}

TEST(Trace, ANormIsNoNameToAssignTo) {
  const auto error = [](const char* formula) {
    return test::error_of([&] {
      Graph graph;
      Surroundings around{
          .numbers = {}, .wires = {{"x", graph.input("x", {{3}, DType::f64})}}, .branches = {}, .norm = {}};
      trace(parse_formula(formula), around);
    });
  };
  EXPECT_EQ(error("norm = x"),
            "assigns to 'norm', which is a norm; choose another name\n"
            "  norm = x\n"
            "  ^^^^");
  EXPECT_NE(error("rmsnorm = x; x"), "");
}

TEST(Trace, AbsOfAWireHasTheRightDerivative) {
  test::check_gradients(
      [](Graph& graph) {
        const Wire x = graph.input("x", {{3, 5}, DType::f64});
        Surroundings around{.numbers = {}, .wires = {{"x", x}}, .branches = {}, .norm = nullptr};
        trace(parse_formula("abs(x)*x"), around);
        return sum_all(around.wires.at("x"));
      },
      {"x"});
}

TEST(Trace, SinkhornHasTheRightDerivative) {
  test::check_gradients(
      [](Graph& graph) {
        const Wire x = graph.input("x", {{2, 3, 4, 4}, DType::f64}), w = graph.input("w", {{4, 4}, DType::f64});
        Surroundings around{.numbers = {}, .wires = {{"x", x}}, .branches = {}, .norm = nullptr};
        trace(parse_formula("sinkhorn(x, 20)"), around);
        return sum_all(square(around.wires.at("x")) * w);
      },
      {"x"});
}

}  // namespace
}  // namespace norma
