// The table of functions is whole, and the walk over a formula is the same for all that read it.
#include "norma/schemes/functions.h"

#include <gtest/gtest.h>

#include <set>

#include "check.h"
#include "norma/backends/cpu.h"
#include "norma/schemes/evaluate.h"
#include "norma/schemes/trace.h"
#include "norma/schemes/walk.h"

namespace norma {
namespace {

template <typename T>
void expect_filled(const Function& function, const char* column, const Column<T>& cell) {
  EXPECT_TRUE(static_cast<bool>(cell) || cell.why_not.starts_with("it "))
      << function.name << ", " << column << ": neither filled nor a reason";
}

TEST(Functions, EveryRowFillsEveryColumn) {
  std::set<std::string_view> names;
  for (const Function& function : functions()) {
    EXPECT_TRUE(names.insert(function.name).second) << function.name << " has two rows";
    EXPECT_FALSE(is_norm_name(function.name)) << function.name;
    EXPECT_FALSE(function.arguments.empty()) << function.name;
    EXPECT_EQ(function.arguments.find_first_not_of("wn"), std::string_view::npos) << function.name;
    expect_filled(function, "number", function.number);
    expect_filled(function, "wire", function.wire);
    expect_filled(function, "moments", function.moments);
    expect_filled(function, "drawing", function.drawing);
    expect_filled(function, "share", function.share);
    EXPECT_TRUE(function.number || function.wire) << function.name << " knows neither numbers nor wires";
    EXPECT_TRUE(!function.wire || function.drawing) << function.name << " cannot be drawn";
    EXPECT_TRUE(!function.number || !function.wire || function.arguments[0] == 'w') << function.name;
  }
  EXPECT_GT(names.size(), 30u);
}

// Where a function knows numbers and wires, both are the same function.
TEST(Functions, NumbersAndWiresAgree) {
  for (const Function& function : functions()) {
    if (!function.number || !function.wire || function.arguments != "w") continue;
    for (const double x : {0.3, 1.7}) {
      Graph graph;
      Surroundings around{
          .numbers = {}, .wires = {{"x", graph.input("x", {{1}, DType::f64})}}, .branches = {}, .norm = nullptr};
      trace(parse_formula(std::string(function.name) + "(x)"), around);
      graph.output("y", around.wires.at("x"));
      CpuSession session(compile(graph, cpu_backend()));
      session.write<double>("x", std::array{x});
      session.run();
      const double expected = evaluate(std::string(function.name) + "(x)", {{"x", x}});
      EXPECT_NEAR(session.tensor<double>("y")[0], expected, 1e-12) << function.name << " of " << x;
    }
  }
}

TEST(Functions, WhatNumbersDoNotKnowSaysWhy) {
  EXPECT_EQ(test::error_of([] { evaluate("softmax(1)", {}); }),
            "'softmax' is not a function of numbers: it is a function of wires\n  softmax(1)\n  ^^^^^^^^^^");
  EXPECT_NE(test::error_of([] { evaluate("sqr(1)", {}); }).find("did you mean 'sqrt'"), std::string::npos);
}

// Writes down what it is asked, in order.
struct Recorder {
  using Value = std::string;
  std::string number(const Expression& e) { return say(print_expression(e)); }
  std::string text(const Expression& e) { return say(print_expression(e)); }
  std::string name(const Expression& e) { return say(e.name); }
  std::string unary(const Expression& e, const std::string& a) { return say(e.name + a); }
  std::string binary(const Expression& e, const std::string& a, const std::string& b) { return say(a + e.name + b); }
  std::optional<std::string> answered(const Expression& e, const std::string& a) {
    return a == e.name + "?" ? std::optional(say("known")) : std::nullopt;
  }
  void expects(const Expression& e) { say("expects " + e.name); }
  std::string call(const Expression& e, const std::vector<std::string>& arguments) {
    std::string all;
    for (const std::string& argument : arguments) all += argument + ";";
    return say(e.name + "{" + all + "}");
  }
  std::optional<bool> decides(const Expression&, const std::string& condition) {
    return condition == "yes" ? std::optional(true) : condition == "no" ? std::optional(false) : std::nullopt;
  }
  std::string either(const Expression&, const std::string& c, const std::string& a, const std::string& b) {
    return say(c + "?" + a + ":" + b);
  }
  std::string say(std::string word) {
    said.push_back(word);
    return word;
  }
  std::vector<std::string> said = {};
};

std::vector<std::string> walked(const char* text) {
  Recorder recorder;
  walk(*parse_expression(text), recorder);
  return recorder.said;
}

TEST(Walk, OperandsComeBeforeOperatorsAndCallsAreCheckedBeforeTheirArguments) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(walked("a + b*c"), (Words{"a", "b", "c", "b*c", "a+b*c"}));
  EXPECT_EQ(walked("g(a, h(b))"), (Words{"expects g", "a", "expects h", "b", "h{b;}", "g{a;h{b;};}"}));
}

TEST(Walk, NothingIsLookedAtThatDoesNotCount) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(walked("if yes then a else b"), (Words{"yes", "a"}));
  EXPECT_EQ(walked("if no then a else b"), (Words{"no", "b"}));
  EXPECT_EQ(walked("if later then a else b"), (Words{"later", "a", "b", "later?a:b"}));
  EXPECT_EQ(evaluate("l > 1 and 1/(l - 1) < 3", {{"l", 1}}), 0);
  EXPECT_EQ(evaluate("l == 1 or 1/(l - 1) < 3", {{"l", 1}}), 1);
}

}  // namespace
}  // namespace norma
