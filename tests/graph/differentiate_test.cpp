// Derivatives of the elementary ops against central differences, first and second order.
#include "check.h"
#include "graph/test_ops.h"

namespace norma {
namespace {

using test::check_gradients;

TEST(Differentiate, ElementaryChain) {
  check_gradients(
      [](Graph& g) {
        const Wire x = g.input("x", {{3, 5}, DType::f64}), w = g.parameter("w", {{5}, DType::f64});
        return sum_all(tanh(x * w) + exp(x * 0.3) * sigmoid(w));
      },
      {"x", "w"});
}

TEST(Differentiate, SecondOrder) {
  check_gradients(
      [](Graph& g) {
        const Wire x = g.input("x", {{4, 3}, DType::f64});
        const Wire wrt[] = {x};
        const Wire first = differentiate(sum_all(tanh(x) * square(x)), wrt)[0];
        return sum_all(square(first));
      },
      {"x"}, {.tolerance = 1e-6});
}

TEST(Differentiate, ThroughAReference) {
  check_gradients(
      [](Graph& g) {
        const Wire x = g.input("x", {{3, 4}, DType::f64}), y = g.input("y", {{3, 4}, DType::f64});
        return sum_all(square(test::gate(x, y)));
      },
      {"x", "y"});
}

// The second input depends on the first; the path between them must be counted once.
TEST(Differentiate, ThroughAReferenceWhoseInputsDependOnEachOther) {
  check_gradients(
      [](Graph& g) {
        const Wire x = g.input("x", {{3, 4}, DType::f64});
        return sum_all(square(test::gate(x, exp(x))));
      },
      {"x"});
}

TEST(Differentiate, ThroughAReferenceGivenOneWireTwice) {
  check_gradients(
      [](Graph& g) {
        const Wire x = g.input("x", {{3, 4}, DType::f64});
        return sum_all(square(test::gate(x, x)));
      },
      {"x"});
}

TEST(Differentiate, SecondOrderThroughAReference) {
  check_gradients(
      [](Graph& g) {
        const Wire x = g.input("x", {{2, 3}, DType::f64}), y = g.input("y", {{2, 3}, DType::f64});
        const Wire wrt[] = {x, y};
        const Wires first = differentiate(sum_all(square(test::gate(x, y))), wrt);
        return sum_all(square(first[0]) + first[1] * y);
      },
      {"x", "y"}, {.tolerance = 1e-6});
}

// Random graphs with broadcasts, sums and wires that are read several times.
TEST(Differentiate, RandomGraphs) {
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    check_gradients(
        [&](Graph& g) {
          const RandomStream random(seed, "graph");
          std::uint64_t draw = 0;
          Wires wires = {g.input("x", {{4, 3}, DType::f64}), g.parameter("row", {{3}, DType::f64}),
                         g.parameter("column", {{4, 1}, DType::f64}), g.parameter("number", {{1}, DType::f64})};
          Wire all = wires[0] * wires[1] + wires[2] * wires[3];
          for (int i = 0; i < 12; ++i) {
            const Wire a = wires[random.below(draw++, wires.size())], b = wires[random.below(draw++, wires.size())];
            Wire next;
            switch (random.below(draw++, 7)) {
              case 0: next = tanh(a); break;
              case 1: next = a * b; break;
              case 2: next = a - b * 0.5; break;
              case 3: next = a / (square(b) + 1.0); break;
              case 4: next = sigmoid(mean_last(a)); break;
              case 5: next = a.shape() == b.shape() ? test::gate(a, b) : exp(tanh(a)); break;
              default: next = a + mean_all(b);
            }
            wires.push_back(tanh(next));
            all = all + tanh(next);
          }
          return sum_all(square(all));
        },
        {"x", "row", "column", "number"}, {.tolerance = 1e-6});
  }
}

// A wire that is computed and yet asked for: its gradient is total, and flows on to what it was computed from.
TEST(Differentiate, ByAComputedWire) {
  Graph g;
  const Wire x = g.input("x", {{3}, DType::f64});
  const Wire h = x * 3.0;
  const Wire wrt[] = {h, x};
  const Wires gradients = differentiate(sum_all(square(h) + x), wrt);
  g.output("dh", gradients[0]);
  g.output("dx", gradients[1]);
  CpuSession session(test::test_plan(g));
  session.write<double>("x", std::vector<double>{1, 2, -1});
  session.run();
  for (std::size_t i = 0; i < 3; ++i) {
    const double value = session.tensor<double>("x")[i];
    EXPECT_DOUBLE_EQ(session.tensor<double>("dh")[i], 6 * value);
    EXPECT_DOUBLE_EQ(session.tensor<double>("dx")[i], 18 * value + 1);
  }
}

}  // namespace
}  // namespace norma
