// Every mistake a user can make with a graph gives one Error that names the wire or parameter, before anything runs.
#include "check.h"
#include "graph/test_ops.h"

namespace norma {
namespace {

using test::error_of;

const Type kVector{{4}, DType::f32};

TEST(BadInput, WrongShape) {
  Graph g;
  const Wire x = g.input("x", {{3, 4}, DType::f32});
  const auto outer = g.scope("layers");
  const auto inner = g.scope("0");
  const Wire gain = g.parameter("norm.gain", {{5}, DType::f32});
  EXPECT_EQ(
      error_of([&] { x* gain; }),
      "in layers.0: mul(x f32[3, 4], layers.0.norm.gain f32[5]): shapes [3, 4] and [5] do not broadcast: 4 meets 5");
}

TEST(BadInput, WrongDType) {
  Graph g;
  const Wire tokens = g.input("tokens", {{3}, DType::i32}), x = g.input("x", {{3}, DType::f32});
  const Wire wide = g.input("wide", {{3}, DType::f64});
  EXPECT_EQ(error_of([&] { tanh(tokens); }), "tanh(tokens i32[3]): computes in f32 or f64, but i32[3] was given");
  EXPECT_EQ(error_of([&] { x + wide; }), "add(x f32[3], wide f64[3]): f32[3] and f64[3] differ in dtype");
}

TEST(BadInput, UnknownDType) {
  Graph g;
  EXPECT_EQ(error_of([&] {
              g.parameter("w", {{3}, static_cast<DType>(77)});
            }),
            "parameter 'w' has an unknown dtype (number 77); expected f32, f64, bf16 or i32");
}

TEST(BadInput, UnnamedParameter) {
  Graph g;
  const auto scope = g.scope("layers.2.attn");
  EXPECT_EQ(error_of([&] { g.parameter("", kVector); }),
            "parameter of type f32[4] in scope 'layers.2.attn' has no name; names key random streams and checkpoints");
}

TEST(BadInput, TwoParametersOfOneName) {
  Graph g;
  g.parameter("w", kVector);
  EXPECT_EQ(error_of([&] {
              g.state("w", {{2, 2}, DType::f64});
            }),
            "two values are named 'w': a parameter of type f32[4] and a state of type f64[2, 2]");
}

TEST(BadInput, AnOutputAndAParameterOfOneName) {
  Graph before, after;
  const Wire x = before.input("x", kVector);
  before.parameter("w", kVector);
  EXPECT_EQ(error_of([&] { before.output("w", tanh(x)); }), "output 'w': the name is taken");
  after.output("w", tanh(after.input("x", kVector)));
  EXPECT_EQ(error_of([&] { after.parameter("w", kVector); }), "parameter 'w': the name is taken by an output");
}

TEST(BadInput, OutputsNeedAName) {
  Graph g;
  const Wire y = tanh(g.input("x", kVector));
  EXPECT_EQ(error_of([&] { g.output("", y); }), "an output of type f32[4] has no name");
  EXPECT_EQ(error_of([&] { g.output("y", Wire()); }), "output 'y': expected a wire of this graph");
}

TEST(BadInput, AMissingWire) {
  Graph g;
  const Wire x = g.input("x", kVector), missing;
  EXPECT_EQ(error_of([&] { x + missing; }), "add(x f32[4], no wire): a wire is missing");
  EXPECT_EQ(error_of([&] { missing + x; }), "a wire is missing: it was declared but never given a value");
}

TEST(BadInput, AWireOfAnotherGraph) {
  Graph g, other;
  const Wire x = g.input("x", kVector), stranger = other.input("stranger", kVector);
  EXPECT_EQ(error_of([&] { x* stranger; }), "mul(x f32[4], stranger f32[4]): wire 'stranger' belongs to another graph");
}

TEST(BadInput, AConstantOfTheWrongSize) {
  Graph g;
  const std::vector<float> values = {1, 2, 3};
  EXPECT_EQ(error_of([&] { g.constant<float>("mask", {4}, values); }),
            "constant 'mask' of type f32[4] needs 16 bytes but was given 12");
}

TEST(BadInput, NothingToRun) {
  Graph g;
  tanh(g.input("x", kVector));
  EXPECT_EQ(error_of([&] { test::test_plan(g); }), "the graph has no output and no update: nothing would run");
}

TEST(BadInput, ALossThatIsNoNumber) {
  Graph g;
  const Wire x = g.input("x", kVector);
  const Wire wrt[] = {x};
  EXPECT_EQ(error_of([&] { differentiate(x, wrt); }), "the loss must be one floating-point number but 'x' is f32[4]");
}

TEST(BadInput, AParameterThatTheLossDoesNotSee) {
  Graph g;
  const Wire x = g.input("x", kVector), w = g.parameter("unused", kVector);
  const Wire loss = sum_all(x);
  const Wire wrt[] = {w};
  EXPECT_EQ(error_of([&] { differentiate(loss, wrt); }),
            "the loss '" + loss.name() + "' does not depend on parameter 'unused'");
}

TEST(BadInput, AnOpWithoutADerivative) {
  Graph g;
  const Wire w = g.parameter("w", kVector), x = g.input("x", kVector);
  const Wire loss = sum_all(test::accumulate(w, x));
  const Wire wrt[] = {x};
  EXPECT_NE(error_of([&] { differentiate(loss, wrt); }).find("accumulate has no derivative"), std::string::npos);
}

TEST(BadInput, APlanLargerThanMemory) {
  Graph g;
  const std::int64_t large = std::int64_t{1} << 22;
  const Wire x = g.input("tokens", {{4}, DType::f32});
  const Wire w = g.parameter("embedding.weight", {{large, large}, DType::f32});
  g.output("y", x * 2.0);
  g.output("z", sum_all(w));
  const auto plan = test::test_plan(g);
  const std::string message = error_of([&] { CpuSession session(plan); });
  EXPECT_TRUE(message.starts_with("the plan needs 64.0 TiB for each of 1 member but this machine has ")) << message;
  EXPECT_NE(message.find("the largest tensor is 'embedding.weight' f32[4194304, 4194304]. Less is needed with smaller "
                         "batches, train.keep=lean or train.recompute_every"),
            std::string::npos)
      << message;
}

TEST(BadInput, AsManyMembersAsNeverFit) {
  Graph g;
  g.output("y", tanh(g.input("x", {{1024, 1024}, DType::f32})));
  const auto plan = test::test_plan(g);
  const std::string message = error_of([&] { CpuSession session(plan, {.members = 2'000'000'000}); });
  EXPECT_NE(message.find("the largest tensor is 'x' f32[1024, 1024]. Less is needed with fewer members ("),
            std::string::npos)
      << message;
}

TEST(BadInput, APlanWhoseSizeDoesNotFitANumber) {
  Graph g;
  const std::int64_t large = std::int64_t{1} << 23;
  Wire x = g.input("x", {{large, large}, DType::f64});
  for (int i = 0; i < 5000; ++i) x = tanh(x);
  g.output("y", x);
  const std::string message = error_of([&] { test::test_plan(g); });
  EXPECT_TRUE(message.starts_with("the plan needs ")) << message;
  EXPECT_TRUE(message.ends_with("its largest tensor is 'x' f64[8388608, 8388608]")) << message;
}

TEST(BadInput, RecomputationOfANegativeNumberOfLayers) {
  Graph g;
  g.output("y", tanh(g.input("x", kVector)));
  EXPECT_EQ(error_of([&] { test::test_plan(g, {.recompute_every = -1}); }),
            "recompute_every is -1; expected 0 (keep everything) or a number of layers");
}

TEST(BadInput, ASessionIsAskedForWhatItDoesNotHave) {
  Graph g;
  const Wire x = g.input("tokens", kVector);
  g.output("logits", tanh(x));
  const auto plan = test::test_plan(g);
  EXPECT_NE(error_of([&] { CpuSession(plan, {.members = 0}); }), "");
  EXPECT_NE(error_of([&] { CpuSession(plan, {.threads = -1}); }), "");
  CpuSession session(plan, {.members = 2});
  EXPECT_EQ(error_of([&] { session.tensor<float>("logit"); }),
            "the plan has no tensor named 'logit' (did you mean 'logits'?)");
  EXPECT_EQ(error_of([&] { session.tensor<double>("logits"); }), "'logits' is f32[4] but was accessed as f64");
  EXPECT_EQ(error_of([&] { session.tensor<float>("logits", 2); }),
            "'logits': member 2 asked for, but the session has 2");
  EXPECT_EQ(error_of([&] {
              session.write<float>("tokens", std::vector<float>{1, 2});
            }),
            "'tokens' has 4 elements but 2 were given");
}

}  // namespace
}  // namespace norma
