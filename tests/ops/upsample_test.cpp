// Images made larger: values, gradients, and the way back.
#include "norma/ops/upsample.h"

#include "check.h"
#include "norma/graph/differentiate.h"

namespace norma {
namespace {

using test::check_gradients;
using test::error_of;

TEST(Upsample, RepeatsPixels) {
  Graph g;
  g.output("y", upsample(g.input("x", {{1, 2, 2, 1}, DType::f32})));
  CpuSession session(test::plain_plan(g));
  session.write<float>("x", std::vector<float>{1, 2, 3, 4}, 0);
  session.run();
  const auto y = session.tensor<float>("y");
  EXPECT_EQ(std::vector<float>(y.begin(), y.end()),
            (std::vector<float>{1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4}));
}

TEST(Upsample, Gradients) {
  for (const std::int64_t factor : {1, 2, 3}) {
    const auto out = [&](Graph& g) { return upsample(g.input("x", {{2, 3, 5, 7}, DType::f64}), factor); };
    check_gradients([&](Graph& g) { return sum_all(square(out(g))); }, {"x"});
    check_gradients(
        [&](Graph& g) {
          const Wire loss = sum_all(square(square(out(g))));
          return sum_all(square(differentiate(loss, Wires{g.find("x")})[0]));
        },
        {"x"}, {.step = 1e-5, .tolerance = 1e-4});
  }
}

TEST(Upsample, BothWaysAgreeWithTheirReferences) {
  using Way = Upsample::Way;
  for (const Way way : {Way::repeat, Way::gather}) {
    Graph g;
    const Wire x = g.input("x", {{3, 6, 9, 31}, DType::f32});
    const Upsample op(way, 3);
    g.output("y", g.apply(std::make_shared<Upsample>(way, 3), Wires{x})[0]);
    g.output("plain", op.reference(Wires{x})[0] * 1.0);
    CpuSession session(test::plain_plan(g));
    test::randomise_all(session, 1);
    session.run();
    const auto y = session.tensor<float>("y"), plain = session.tensor<float>("plain");
    ASSERT_EQ(y.size(), plain.size());
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], plain[i], 1e-5) << i;
  }
}

TEST(Upsample, MistakesAreNamed) {
  Graph g;
  const Wire x = g.input("x", {{2, 3, 4}, DType::f32}), image = g.input("image", {{1, 3, 4, 2}, DType::f32});
  EXPECT_NE(error_of([&] { upsample(x); }).find("needs images [batch, height, width, channels], but is given"),
            std::string::npos);
  EXPECT_NE(error_of([&] { upsample(image, 65); }).find("a factor of 65; expected 1 to 64"), std::string::npos);
  EXPECT_NE(error_of([&] {
              g.apply(std::make_shared<Upsample>(Upsample::Way::gather, 2), Wires{image});
            }).find("does not divide into squares of 2 x 2"),
            std::string::npos);
}

}  // namespace
}  // namespace norma
