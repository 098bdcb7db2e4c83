// Every optimiser against its textbook update written out in double: in place, per member, with group rules.
#include "norma/ops/optimiser.h"

#include <cmath>
#include <limits>

#include "check.h"

namespace norma {
namespace {

using C = OptimiserControl;
using Control = std::array<double, C::size>;

constexpr double kBeta1 = 0.9, kBeta2 = 0.99, kEps = 1e-3, kScale = 0.7;

Control control_at(int step, double lr, double rectify) {
  Control control{};
  control[C::lr] = lr;
  control[C::shrink] = 0.01;
  control[C::l2] = 0.02;
  control[C::beta1] = kBeta1;
  control[C::beta2] = kBeta2;
  control[C::eps] = kEps;
  control[C::correction1] = 1 - std::pow(kBeta1, step);
  control[C::correction2] = 1 - std::pow(kBeta2, step);
  control[C::rectify] = rectify;
  control[C::active] = 1;
  return control;
}

struct Textbook {
  OptimiserKind kind;
  OptimiserGroup group;
  double m = 0, v = 0;

  double change(double p, double raw_gradient, const Control& c) {
    const double lr = c[C::lr] * group.lr, eps = c[C::eps] * group.eps;
    const double g = raw_gradient * kScale + c[C::l2] * group.l2 * p;
    double step = 0;
    if (kind == OptimiserKind::sgd) {
      m = kBeta1 * m + g;
      step = lr * m;
    } else if (kind == OptimiserKind::adagrad) {
      v += g * g;
      step = lr * g / (std::sqrt(v) + eps);
    } else {
      m = kBeta1 * m + (1 - kBeta1) * g;
      v = kBeta2 * v + (1 - kBeta2) * g * g;
      const double first = m / c[C::correction1];
      if (kind == OptimiserKind::adam) {
        step = lr * first / (std::sqrt(v / c[C::correction2]) + eps);
      } else if (c[C::rectify] > 0) {
        step = lr * first * c[C::rectify] * std::sqrt(c[C::correction2]) / (std::sqrt(v) + eps);
      } else {
        step = lr * first;
      }
    }
    return c[C::shrink] * group.shrink * p + step;
  }
};

class EveryOptimiser : public ::testing::TestWithParam<OptimiserKind> {};

TEST_P(EveryOptimiser, FollowsTheTextbookForSeveralSteps) {
  const OptimiserKind kind = GetParam();
  const OptimiserGroup group{.lr = 0.5, .eps = 2, .shrink = 3, .l2 = 0.25};
  const std::int64_t n = 9001;  // several tiles and a ragged end
  Graph g;
  const Wire p = g.parameter("p", {{n}, DType::f64}), target = g.input("target", {{n}, DType::f64});
  const Wire control = g.input("control", {{C::size}, DType::f64}), scale = g.input("scale", {{1}, DType::f64});
  const Wire loss = sum_all(square(p - target));
  const Wire wrt[] = {p};
  g.output("squares", optimise(kind, wrt, differentiate(loss, wrt), control, scale, {group}));
  CpuSession session(test::plain_plan(g), {.members = 2, .threads = 2});
  test::randomise<double>(session, "p", 1);
  test::randomise<double>(session, "target", 2);
  session.write_all<double>("scale", std::array{kScale});
  std::vector<double> x(session.tensor<double>("p").begin(), session.tensor<double>("p").end());
  std::vector<Textbook> rules(x.size(), Textbook{kind, group});
  const double rates[] = {0.1, 0.02};
  for (int step = 1; step <= 5; ++step) {
    const double rectify = step < 3 ? 0 : 0.4;
    for (int member = 0; member < 2; ++member)
      session.write<double>("control", control_at(step, rates[member], rectify), member);
    session.run();
    double squares = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double gradient = 2 * (x[i] - session.tensor<double>("target")[i]);
      const double change = rules[i].change(x[i], gradient, control_at(step, rates[1], rectify));
      squares += change * change;
      x[i] -= change;
      ASSERT_NEAR(session.tensor<double>("p", 1)[i], x[i], 1e-12) << "step " << step << " element " << i;
    }
    EXPECT_NEAR(session.tensor<double>("squares", 1)[0], squares, 1e-10 * squares) << "step " << step;
  }
  EXPECT_NE(session.tensor<double>("p", 0)[0], session.tensor<double>("p", 1)[0])
      << "members have their own learning rates";
}

TEST_P(EveryOptimiser, ChangesNothingWhenInactiveOrNotFinite) {
  Graph g;
  const Wire p = g.parameter("p", {{100}, DType::f32}), gradient = g.input("g", {{100}, DType::f32});
  const Wire control = g.input("control", {{C::size}, DType::f32}), scale = g.input("scale", {{1}, DType::f32});
  g.output("squares", optimise(GetParam(), Wires{p}, Wires{gradient}, control, scale, {{}}));
  CpuSession session(test::plain_plan(g));
  test::randomise<float>(session, "p", 1);
  test::randomise<float>(session, "g", 2);
  const std::vector<float> before(session.tensor<float>("p").begin(), session.tensor<float>("p").end());
  const auto run = [&](float active, float scale_value) {
    std::array<float, C::size> values{};
    const Control wide = control_at(1, 0.1, 1);
    std::copy(wide.begin(), wide.end(), values.begin());
    values[C::active] = active;
    session.write<float>("control", values);
    session.write<float>("scale", std::array{scale_value});
    session.run();
    return std::equal(before.begin(), before.end(), session.tensor<float>("p").begin());
  };
  EXPECT_TRUE(run(0, 1));
  EXPECT_TRUE(run(1, std::numeric_limits<float>::quiet_NaN()));
  EXPECT_TRUE(run(1, std::numeric_limits<float>::infinity()));
  for (const char* state : {"p/m", "p/v"}) {
    if (!session.plan().has_slot(state)) continue;
    for (const float value : session.tensor<float>(state)) ASSERT_EQ(value, 0) << state;
  }
  EXPECT_EQ(session.tensor<double>("squares")[0], 0);
  EXPECT_FALSE(run(1, 1));
}

// Parameters of different sizes, groups and unit vectors in one op have the bits that each has alone.
TEST_P(EveryOptimiser, UpdatesManyParametersAsItDoesOne) {
  struct Parameter {
    Shape shape;
    OptimiserGroup group;
  };
  const std::vector<Parameter> all = {{{3}, {.lr = 0.5}},
                                      {{70, 65}, {.shrink = 2, .unit = UnitVectors::rows}},
                                      {{9001}, {.eps = 3}},
                                      {{33, 31}, {.l2 = 0, .unit = UnitVectors::columns}}};
  const auto run = [&](std::size_t first, std::size_t count) {
    Graph g;
    Wires parameters, gradients;
    std::vector<OptimiserGroup> groups;
    for (std::size_t i = first; i < first + count; ++i) {
      parameters.push_back(g.parameter("p" + std::to_string(i), {all[i].shape, DType::f32}));
      gradients.push_back(g.input("g" + std::to_string(i), {all[i].shape, DType::f32}));
      groups.push_back(all[i].group);
    }
    const Wire control = g.input("control", {{C::size}, DType::f32}), scale = g.input("scale", {{1}, DType::f32});
    g.output("squares", optimise(GetParam(), parameters, gradients, control, scale, groups));
    auto session = std::make_unique<CpuSession>(test::plain_plan(g), CpuSession::Options{.threads = 2});
    for (std::size_t i = first; i < first + count; ++i) {
      test::randomise<float>(*session, "p" + std::to_string(i), i);
      test::randomise<float>(*session, "g" + std::to_string(i), i);
    }
    session->write<float>("scale", std::array{0.5f});
    for (int step = 1; step <= 2; ++step) {
      const Control wide = control_at(step, 0.1, 1);
      session->write<float>("control", std::vector<float>(wide.begin(), wide.end()));
      session->run();
    }
    return session;
  };
  const auto together = run(0, all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto alone = run(i, 1);
    const std::string name = "p" + std::to_string(i);
    EXPECT_GT(alone->tensor<double>("squares")[0], 0);
    EXPECT_EQ(alone->tensor<double>("squares")[0], together->tensor<double>("squares")[i]);
    for (const char* what : {"", "/m", "/v"}) {
      if (!alone->plan().has_slot(name + what)) continue;
      const auto expected = alone->tensor<float>(name + what), found = together->tensor<float>(name + what);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), found.begin(), found.end())) << name << what;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryOptimiser,
                         ::testing::Values(OptimiserKind::adam, OptimiserKind::radam, OptimiserKind::sgd,
                                           OptimiserKind::adagrad),
                         [](const auto& kind) { return std::string(name_of(kind.param)); });

TEST(Optimiser, BringsRowsOrColumnsBackToUnitLength) {
  for (const auto unit : {UnitVectors::rows, UnitVectors::columns}) {
    const std::int64_t rows = 37, columns = 83;
    Graph g;
    const Wire p = g.parameter("p", {{rows, columns}, DType::f32}),
               gradient = g.input("g", {{rows, columns}, DType::f32});
    optimise(OptimiserKind::adam, Wires{p}, Wires{gradient}, g.input("control", {{C::size}, DType::f32}),
             g.input("scale", {{1}, DType::f32}), {{.unit = unit}});
    CpuSession session(test::plain_plan(g));
    test::randomise<float>(session, "p", 1);
    test::randomise<float>(session, "g", 2);
    std::array<float, C::size> values{};
    const Control wide = control_at(1, 0.1, 1);
    std::copy(wide.begin(), wide.end(), values.begin());
    session.write<float>("control", values);
    session.write<float>("scale", std::array{1.0f});
    session.run();
    const bool by_rows = unit == UnitVectors::rows;
    const auto x = session.tensor<float>("p");
    for (std::int64_t i = 0; i < (by_rows ? rows : columns); ++i) {
      double squares = 0;
      for (std::int64_t j = 0; j < (by_rows ? columns : rows); ++j) {
        const double value = x[static_cast<std::size_t>(by_rows ? i * columns + j : j * columns + i)];
        squares += value * value;
      }
      ASSERT_NEAR(squares, 1, 1e-5) << (by_rows ? "row " : "column ") << i;
    }
  }
}

}  // namespace
}  // namespace norma
