// Products of rows that are mostly zeros: values, gradients of both orders, bits, mistakes.
#include "norma/ops/sparse_product.h"

#include "check.h"
#include "elementary_backend.h"
#include "norma/ops/matmul.h"

namespace norma {
namespace {

using test::check_gradients;
using test::error_of;

TEST(SparseProduct, Gradients) {
  const auto out = [](Graph& g) {
    return sparse_product(g.input("x", {{4, 37}, DType::f64}), g.parameter("w", {{37, 5}, DType::f64}));
  };
  check_gradients([&](Graph& g) { return sum_all(square(out(g))); }, {"x", "w"});
  check_gradients(
      [&](Graph& g) {
        const Wire loss = sum_all(square(square(out(g))));
        const Wires gradients = differentiate(loss, Wires{g.find("x"), g.find("w")});
        return sum_all(square(gradients[0])) * 1e-3 + sum_all(square(gradients[1])) * 1e-3;
      },
      {"x", "w"}, {.step = 1e-5, .tolerance = 1e-4, .most_elements = 8});
}

// Rows with nothing, with little, with everything, and with a number that is none.
TEST(SparseProduct, SkipsZerosAndNothingElse) {
  for (const int threads : {1, 3}) {
    Graph g;
    const Wire x = g.input("x", {{70, 300}, DType::f32}), w = g.parameter("w", {{300, 19}, DType::f32});
    const Wire dy = g.input("dy", {{70, 19}, DType::f32});
    const Wire factors[] = {x, w};
    const Wires product = g.apply(std::make_shared<SparseProduct>(), factors);
    const Wire in[] = {x, product[1], dy}, looked[] = {x, g.fill(product[1].type(), -1), dy};
    g.output("y", product[0]);
    g.output("dw", g.apply(std::make_shared<SparseGradient>(), in)[0]);
    g.output("looked_dw", g.apply(std::make_shared<SparseGradient>(), looked)[0]);
    g.output("lists", product[1]);
    g.output("plain", matmul_rows(x, w));
    g.output("plain_dw", matmul(x, dy, Transpose::yes));
    CpuSession session(test::plain_plan(g), {.threads = threads});
    test::randomise_all(session, 1);
    const std::span<float> rows = session.tensor<float>("x");
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::size_t row = i / 300;
      if (row == 0 || (row > 2 && i % 41 != row % 41)) rows[i] = 0;
    }
    session.run();
    for (const auto& [name, other] : {std::pair{"y", "plain"}, {"dw", "plain_dw"}}) {
      const auto sparse = session.tensor<float>(name), plain = session.tensor<float>(other);
      for (std::size_t i = 0; i < plain.size(); ++i) ASSERT_NEAR(sparse[i], plain[i], 2e-5) << name << " " << i;
    }
    const auto listed = session.tensor<float>("dw"), looked_at = session.tensor<float>("looked_dw");
    EXPECT_TRUE(std::ranges::equal(listed, looked_at)) << "a list says what its row says, in the same order";
    const auto lists = session.tensor<std::int32_t>("lists");
    const std::size_t size = lists.size() / 70;
    EXPECT_EQ(lists[0], 0);
    EXPECT_EQ(lists[1 * size], -1) << "a whole row is no list";
    EXPECT_EQ(lists[3 * size], std::ranges::count_if(rows.subspan(3 * 300, 300), [](float one) { return one != 0; }));
    rows[5 * 300 + 299] = std::numeric_limits<float>::quiet_NaN();
    session.run();
    EXPECT_TRUE(std::isnan(session.tensor<float>("y")[5 * 19])) << "it is not zero";
    EXPECT_TRUE(std::isnan(session.tensor<float>("dw")[299 * 19]));
  }
}

// As on a device that has no kernel for it: nobody lists anything, and nobody asks.
TEST(SparseProduct, IsAProductWhereThereIsNoKernel) {
  const auto gradient = [](const Backend& backend) {
    Graph g;
    const Wire x = g.input("x", {{9, 300}, DType::f32}), w = g.parameter("w", {{300, 5}, DType::f32});
    g.output("dw", differentiate(sum_all(square(sparse_product(x, w))), Wires{w})[0]);
    CpuSession session(compile(g, backend));
    test::randomise_all(session);
    const std::span<float> rows = session.tensor<float>("x");
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = i % 29 == 0 ? rows[i] : 0;
    session.run();
    return session.read<float>("dw");
  };
  const std::vector<float> listed = gradient(cpu_backend()), plain = gradient(test::ElementaryBackend());
  EXPECT_NE(std::ranges::count_if(plain, [](float one) { return one != 0; }), 0);
  for (std::size_t i = 0; i < plain.size(); ++i) ASSERT_NEAR(listed[i], plain[i], 1e-4) << i;
}

TEST(SparseProduct, MistakesAreNamed) {
  Graph g;
  const Wire x = g.input("x", {{4, 6}, DType::f32}), w = g.parameter("w", {{5, 2}, DType::f32});
  EXPECT_NE(error_of([&] { sparse_product(x, w); }).find("do not fit together"), std::string::npos);
  const Wire in[] = {x, g.input("list", {{4, 3}, DType::i32}), g.input("dy", {{4, 2}, DType::f32})};
  EXPECT_NE(error_of([&] { g.apply(std::make_shared<SparseGradient>(), in); }).find("the list"), std::string::npos);
}

}  // namespace
}  // namespace norma
