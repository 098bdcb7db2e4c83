// The machinery of named rewrites, on two small ones: square(exp(x)) and a chain of sums.
#include "norma/graph/rewrite.h"

#include <numeric>

#include "check.h"
#include "graph/test_ops.h"
#include "norma/graph/sum.h"

namespace norma {
namespace {

const Type kMatrix{{3, 5}, DType::f32};

bool is_binary(const Rewriter& rewriter, int node, Binary function) {
  const auto* op = rewriter.as<BinaryOp>(node);
  return op != nullptr && op->function() == function;
}

// a * tanh(b) -> gate(a, b)
bool fuse_gate(Rewriter& rewriter, int index) {
  if (!is_binary(rewriter, index, Binary::mul)) return false;
  const std::vector<int> inputs = rewriter.node(index).inputs;
  const int tanh_node = rewriter.producer(inputs[1]);
  const auto* op = rewriter.as<UnaryOp>(tanh_node);
  if (op == nullptr || op->name() != "tanh" || !rewriter.private_to(inputs[1], index)) return false;
  const int others[] = {tanh_node};
  rewriter.replace(index, others, std::make_shared<test::Gate>(), {inputs[0], rewriter.node(tanh_node).inputs[0]},
                   rewriter.node(index).outputs);
  return true;
}

// (a + b) + c -> sum(a, b, c)
bool flatten_sum(Rewriter& rewriter, int index) {
  if (rewriter.as<Sum>(index) == nullptr) return false;
  std::vector<int> inputs = rewriter.node(index).inputs;
  const int inner = rewriter.producer(inputs[0]);
  if (rewriter.as<Sum>(inner) == nullptr || !rewriter.private_to(inputs[0], index)) return false;
  std::vector<int> terms = rewriter.node(inner).inputs;
  terms.insert(terms.end(), inputs.begin() + 1, inputs.end());
  const int others[] = {inner};
  rewriter.replace(index, others, rewriter.node(index).op, std::move(terms), rewriter.node(index).outputs);
  return true;
}

std::vector<Wire> build(Graph& g) {
  const Wire a = g.input("a", kMatrix), b = g.input("b", kMatrix), c = g.input("c", kMatrix);
  return {a * tanh(b), a + b + c + a * b};
}

std::vector<float> run(const std::vector<Rewrite>& rewrites, std::size_t expected_steps) {
  Graph g;
  const std::vector<Wire> wires = build(g);
  g.output("gated", wires[0]);
  g.output("summed", wires[1]);
  const auto plan = test::test_plan(g, {.rewrites = rewrites});
  EXPECT_EQ(plan->steps().size(), expected_steps);
  CpuSession session(plan);
  test::randomise_all(session);
  session.run();
  std::vector<float> result;
  for (const char* name : {"gated", "summed"}) {
    const std::span<float> tensor = session.tensor<float>(name);
    result.insert(result.end(), tensor.begin(), tensor.end());
  }
  return result;
}

TEST(Rewrite, FusedEqualsUnfused) {
  const std::vector<float> plain = run({}, 6);
  const std::vector<float> fused = run({{"gate", fuse_gate}, {"flatten-sum", flatten_sum}}, 3);
  ASSERT_EQ(plain.size(), fused.size());
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(plain[i], fused[i], 4e-7 * (1 + std::abs(plain[i])));
}

TEST(Rewrite, CountsHowOftenEachFired) {
  Graph g;
  const std::vector<Wire> wires = build(g);
  g.output("gated", wires[0]);
  g.output("summed", wires[1]);
  const auto fired = fuse(g, std::vector<Rewrite>{{"gate", fuse_gate}, {"flatten-sum", flatten_sum}});
  EXPECT_EQ(fired.at("gate"), 1);
  EXPECT_EQ(fired.at("flatten-sum"), 2);
}

TEST(Rewrite, AnInnerValueThatSomebodyElseReadsStays) {
  Graph g;
  const Wire a = g.input("a", kMatrix), b = g.input("b", kMatrix);
  const Wire t = tanh(b);
  g.output("gated", a * t);
  g.output("other", exp(t));
  EXPECT_EQ(fuse(g, std::vector<Rewrite>{{"gate", fuse_gate}}).at("gate"), 0);
}

TEST(Rewrite, AnInnerValueThatIsAnOutputStays) {
  Graph g;
  const Wire a = g.input("a", kMatrix), b = g.input("b", kMatrix);
  const Wire t = tanh(b);
  g.output("gated", a * t);
  g.output("tanh", t);
  EXPECT_EQ(fuse(g, std::vector<Rewrite>{{"gate", fuse_gate}}).at("gate"), 0);
}

TEST(Rewrite, KnowsWhoReadsAndMakesWhat) {
  Graph g;
  const Wire a = g.input("a", kMatrix), b = g.input("b", kMatrix);
  const Wire t = tanh(a);  // node 0
  const Wire p = t * b;    // node 1
  const Wire q = exp(t);   // node 2
  g.output("p", p);
  g.output("q", q);
  const Rewriter rewriter(g);
  EXPECT_EQ(rewriter.size(), 3);
  EXPECT_EQ(rewriter.producer(a.id()), -1);
  EXPECT_EQ(rewriter.producer(q.id()), 2);
  EXPECT_FALSE(rewriter.private_to(t.id(), 1)) << "two read it";
  EXPECT_TRUE(rewriter.private_to(b.id(), 1));
  EXPECT_FALSE(rewriter.private_to(b.id(), 2)) << "another reads it";
  EXPECT_TRUE(rewriter.is_output(p.id()));
  const int values[] = {t.id(), b.id()};
  EXPECT_TRUE(rewriter.available_before(values, 1));
  EXPECT_FALSE(rewriter.available_before(values, 0));
  const int read[] = {t.id()};
  EXPECT_FALSE(rewriter.unread_before(read, 2, -1));
  EXPECT_TRUE(rewriter.unread_before(read, 2, 1));
}

TEST(Rewrite, ADerivativeFusesLikeAnythingElse) {
  Graph g;
  const Wire a = g.parameter("a", kMatrix), b = g.parameter("b", kMatrix);
  const Wire loss = sum_all(square(a * tanh(b)));
  const Wire wrt[] = {a, b};
  const Wires gradients = differentiate(loss, wrt);
  g.output("da", gradients[0]);
  g.output("db", gradients[1]);
  // tanh(b) is read by the backward pass too: it must survive.
  EXPECT_EQ(fuse(g, std::vector<Rewrite>{{"gate", fuse_gate}}).at("gate"), 0);
  EXPECT_NO_THROW(test::test_plan(g));
}

}  // namespace
}  // namespace norma
