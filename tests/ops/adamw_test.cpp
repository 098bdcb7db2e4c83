// AdamW against the textbook update written out in double, in place, per member.
#include "norma/ops/adamw.h"

#include "check.h"

namespace norma {
namespace {

TEST(AdamW, FollowsTheTextbookForSeveralSteps) {
  const std::int64_t n = 1000;
  Graph g;
  const Wire p = g.parameter("p", {{n}, DType::f64}), target = g.input("target", {{n}, DType::f64});
  const Wire control = g.input("control", {{AdamWControl::size}, DType::f64}),
             scale = g.input("scale", {{1}, DType::f64});
  const Wire loss = sum_all(square(p - target));
  const Wire wrt[] = {p};
  adamw(p, differentiate(loss, wrt)[0], control, scale, {.lr = 0.5, .weight_decay = 2});
  g.output("loss", loss);
  Session session(compile(g), {.members = 2, .threads = 2});
  test::randomise<double>(session, "p", 1);
  test::randomise<double>(session, "target", 2);
  std::vector<double> x(session.tensor<double>("p").begin(), session.tensor<double>("p").end()), m(n, 0), v(n, 0);
  const double rates[] = {0.1, 0.02}, b1 = 0.9, b2 = 0.99, eps = 1e-3, decay = 0.1, gradient_scale = 0.7;
  std::vector<double> first_loss(2);
  for (int step = 1; step <= 5; ++step) {
    for (int member = 0; member < 2; ++member) {
      session.write<double>(
          "control", std::array{rates[member], b1, b2, eps, decay, 1 - std::pow(b1, step), 1 - std::pow(b2, step)},
          member);
      session.write<double>("scale", std::array{gradient_scale}, member);
    }
    session.run();
    const double lr = rates[1] * 0.5;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double grad = 2 * (x[i] - session.tensor<double>("target")[i]) * gradient_scale;
      m[i] = b1 * m[i] + (1 - b1) * grad;
      v[i] = b2 * v[i] + (1 - b2) * grad * grad;
      x[i] = x[i] * (1 - lr * decay * 2) -
             lr * (m[i] / (1 - std::pow(b1, step))) / (std::sqrt(v[i] / (1 - std::pow(b2, step))) + eps);
      ASSERT_NEAR(session.tensor<double>("p", 1)[i], x[i], 1e-13) << "step " << step << " element " << i;
    }
  }
  EXPECT_NE(session.tensor<double>("p", 0)[0], session.tensor<double>("p", 1)[0])
      << "members have their own learning rates";
}

}  // namespace
}  // namespace norma
