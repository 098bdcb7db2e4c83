// Embedding: gather, deterministic scatter, ids that do not exist, tables of positions.
#include "norma/ops/embedding.h"

#include "check.h"

namespace norma {
namespace {

using test::check_gradients;
using test::error_of;

const std::vector<std::int32_t> kIds = {3, 0, 3, 6, 3, 1};

TEST(Embedding, GradientsWithRepeatedIds) {
  check_gradients(
      [](Graph& g) {
        const Wire y = embedding(g.parameter("table", {{7, 5}, DType::f64}), g.input("ids", {{2, 3}, DType::i32}));
        return sum_all(square(y) * g.input("weight", y.type()));
      },
      {"table"}, {.prepare = [](CpuSession& session) { session.write<std::int32_t>("ids", kIds); }});
}

TEST(Embedding, SecondDerivatives) {
  check_gradients(
      [](Graph& g) {
        const Wire table = g.parameter("table", {{7, 5}, DType::f64});
        const Wire wrt[] = {table};
        const Wire y = tanh(embedding(table, g.input("ids", {{2, 3}, DType::i32})));
        return sum_all(square(differentiate(sum_all(y), wrt)[0]));
      },
      {"table"}, {.tolerance = 1e-6, .prepare = [](CpuSession& session) { session.write<std::int32_t>("ids", kIds); }});
}

// With positions, and its gradient added to another: the same as the parts by themselves.
TEST(Embedding, TakesPositionsAndGradientsToAddTo) {
  const auto prepare = [](CpuSession& session) { session.write<std::int32_t>("ids", kIds); };
  check_gradients(
      [](Graph& g) {
        const Wire in[] = {g.parameter("table", {{7, 5}, DType::f64}), g.input("ids", {{2, 3}, DType::i32}),
                           g.parameter("positions", {{3, 5}, DType::f64})};
        const Wire y = g.apply(std::make_shared<Embedding>(), in)[0];
        return sum_all(square(y) * g.input("weight", y.type()));
      },
      {"table", "positions"}, {.prepare = prepare});
  check_gradients(
      [](Graph& g) {
        const Wire in[] = {g.input("ids", {{2, 3}, DType::i32}), g.parameter("dy", {{2, 3, 5}, DType::f64}),
                           g.parameter("onto", {{7, 5}, DType::f64})};
        const Wire d = g.apply(std::make_shared<EmbeddingBackward>(7), in)[0];
        return sum_all(square(d) * g.input("weight", d.type()));
      },
      {"dy", "onto"}, {.prepare = prepare});
  Graph g;
  const Wire table = g.parameter("table", {{7, 5}, DType::f64}), ids = g.input("ids", {{2, 3}, DType::i32});
  const Wire positions = g.parameter("positions", {{3, 5}, DType::f64});
  const Wire dy = g.input("dy", {{2, 3, 5}, DType::f64}), onto = g.input("onto", {{7, 5}, DType::f64});
  const Wire with[] = {table, ids, positions}, alone[] = {ids, dy}, added[] = {ids, dy, onto};
  g.output("y", g.apply(std::make_shared<Embedding>(), with)[0] - add_positions(embedding(table, ids), positions));
  g.output("d", g.apply(std::make_shared<EmbeddingBackward>(7), added)[0] -
                    (g.apply(std::make_shared<EmbeddingBackward>(7), alone)[0] + onto));
  CpuSession session(test::plain_plan(g));
  test::randomise_all(session);
  prepare(session);
  session.run();
  for (const double value : session.tensor<double>("y")) EXPECT_EQ(value, 0);
  for (const double value : session.tensor<double>("d")) EXPECT_NEAR(value, 0, 1e-14);
  const Wire wrong[] = {table, ids, onto};
  EXPECT_NE(error_of([&] { g.apply(std::make_shared<Embedding>(), wrong); }).find("positions"), std::string::npos);
}

std::vector<float> table_gradient(int threads, int members, int which, const std::vector<std::int32_t>& ids) {
  Graph g;
  const Wire table = g.parameter("table", {{50, 100}, DType::f32});
  const Wire y = embedding(table, g.input("ids", {{static_cast<std::int64_t>(ids.size())}, DType::i32}));
  const Wire wrt[] = {table};
  g.output("y", y);
  g.output("d", differentiate(sum_all(y * g.input("weight", y.type())), wrt)[0]);
  CpuSession session(test::plain_plan(g), {.members = members, .threads = threads});
  test::randomise_all(session);
  session.write_all<std::int32_t>("ids", ids);
  session.run();
  const auto d = session.tensor<float>("d", which), rows = session.tensor<float>("y", which);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::int32_t id = ids[i / 100];
    EXPECT_EQ(std::isnan(rows[i]), id < 0 || id >= 50);
  }
  return {d.begin(), d.end()};
}

TEST(Embedding, SameBitsOnAnyNumberOfThreadsAndMembers) {
  std::vector<std::int32_t> ids(301);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i * i % 50);
  const auto one = table_gradient(1, 1, 0, ids);
  EXPECT_EQ(one, table_gradient(2, 1, 0, ids));
  EXPECT_EQ(one, table_gradient(3, 1, 0, ids));
  EXPECT_EQ(one, table_gradient(2, 3, 2, ids));
}

TEST(Embedding, AnIdOutsideTheVocabularyIsNaNWithoutGradient) {
  const auto d = table_gradient(1, 1, 0, {-1, 50, 2147483647, -2147483648, 7});
  for (std::size_t i = 0; i < d.size(); ++i) EXPECT_EQ(d[i] != 0, i / 100 == 7) << i;
  EXPECT_EQ(error_of([] {
              check_tokens(std::vector<std::int32_t>{1, 2, 9, 3}, 5);
            }),
            "token 9 at position 2 is outside the vocabulary of 5 (0 to 4)");
  EXPECT_EQ(error_of([] { check_tokens(kIds, 7); }), "");
}

TEST(Embedding, Positions) {
  Graph g;
  const Wire x = g.input("x", {{2, 3, 4}, DType::f64}), table = sinusoidal_positions(g, "positions", 5, 4, DType::f64);
  g.output("y", add_positions(x, table));
  CpuSession session(test::plain_plan(g));
  session.run();
  const auto y = session.tensor<double>("y");
  for (std::size_t b = 0; b < 2; ++b) {
    EXPECT_EQ(y[b * 12 + 4 + 0], std::sin(1.0));
    EXPECT_EQ(y[b * 12 + 4 + 1], std::cos(1.0));
    EXPECT_NEAR(y[b * 12 + 8 + 2], std::sin(0.02), 1e-16);
    EXPECT_EQ(y[b * 12 + 3], 1.0);
  }
  EXPECT_NE(error_of([&] {
              add_positions(g.input("z", {{2, 6, 4}, DType::f64}), table);
            }).find("5 positions are not enough for the 6 time steps of [2, 6, 4]"),
            std::string::npos);
  EXPECT_NE(error_of([&] { embedding(x, x); }).find("ids must be i32"), std::string::npos);
}

}  // namespace
}  // namespace norma
