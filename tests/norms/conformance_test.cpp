// What every norm in the catalogue must do.
#include "norms/conformance.h"

#include <bit>
#include <limits>

namespace norma {
namespace {

using namespace test;

class NormConformance : public testing::TestWithParam<std::string> {
 protected:
  const NormInfo& info() const { return norm(GetParam()); }
  Trial trial(std::int64_t rows, std::int64_t width, DType dtype = DType::f64) const {
    return {.info = &info(), .rows = rows, .width = width, .dtype = dtype};
  }
};

TEST_P(NormConformance, GradientsMatchFiniteDifferences) {
  for (const std::int64_t width : {3, 31, 32, 33}) {
    Graph names;
    const Trial trial = this->trial(5, width);
    check_gradients([&](Graph& g) { return curved_loss_of(trace(g, trial).y); }, trace(names, trial).names,
                    {.tolerance = 1e-6, .most_elements = 40});
  }
}

TEST_P(NormConformance, SecondDerivativesMatchFiniteDifferences) {
  Graph names;
  const Trial trial = this->trial(4, 6);
  check_gradients(
      [&](Graph& g) {
        const Wire loss = curved_loss_of(trace(g, trial).y);
        const Wire wrt[] = {g.find("x")};
        return sum_all(square(differentiate(loss, wrt)[0]));
      },
      trace(names, trial).names, {.tolerance = 1e-5});
}

TEST_P(NormConformance, AgreesWithItsReferenceAtAwkwardSizes) {
  for (const std::int64_t width : {1, 31, 32, 33, 1023}) {
    for (const std::int64_t rows : {5, 67}) {
      Trial own = trial(rows, width), reference = own;
      reference.by_reference = true;
      CpuSession a(plan_of(own)), b(plan_of(reference));
      fill(a, 3), fill(b, 3);
      a.run(), b.run();
      for (const std::string& name : results_of(own)) {
        const double tolerance = rounding(DType::f64, rows * width) * (1 + term_size(a, name));
        expect_close(read(a, name), read(b, name), tolerance, name + " at width " + std::to_string(width));
      }
    }
  }
}

TEST_P(NormConformance, SingleAgreesWithDouble) {
  for (const std::int64_t width : {1, 31, 33, 256, 1023, 2500}) {
    CpuSession a(plan_of(trial(67, width, DType::f32))), b(plan_of(trial(67, width)));
    fill(a, 4), fill(b, 4);
    a.run(), b.run();
    for (const std::string& name : results_of(trial(67, width))) {
      const double tolerance = rounding(DType::f32, 67 * width) * (1 + term_size(b, name));
      expect_close(read(a, name), read(b, name), tolerance, name + " at width " + std::to_string(width));
    }
  }
}

// A variance taken as E[x^2] - mean^2 would lose all its digits here.
TEST_P(NormConformance, SurvivesALargeMean) {
  if (!centres(info())) return;
  constexpr double kOffset = 1e4;
  for (const std::int64_t width : {33, 1024}) {
    CpuSession a(plan_of(trial(61, width, DType::f32))), b(plan_of(trial(61, width)));
    fill(a, 5, kOffset), fill(b, 5, kOffset);
    a.run(), b.run();
    // The mean itself is known to a few units in its last place, and y moves with it.
    const double tolerance = 4 * epsilon_of(DType::f32) * kOffset;
    for (const std::string& name : results_of(trial(61, width))) {
      const double terms = name == "y" || name == "d/x" ? 1 : 61;
      expect_close(read(a, name), read(b, name), tolerance * terms * (1 + term_size(b, name)), name);
    }
  }
}

TEST_P(NormConformance, ZeroAndConstantRowsStayFinite) {
  for (const float value : {0.0f, 3.25f}) {
    CpuSession session(plan_of(trial(9, 37, DType::f32)));
    fill(session, 6);
    std::ranges::fill(session.tensor<float>("x"), value);
    session.run();
    for (const std::string& name : results_of(trial(9, 37))) {
      for (const double v : read(session, name)) ASSERT_TRUE(std::isfinite(v)) << name << " of rows of " << value;
    }
    if (value != 0 && !centres(info())) continue;
    const bool biased = session.plan().has_slot("bias");
    const std::vector<double> y = read(session, "y");
    for (std::size_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(y[i], biased ? read(session, "bias")[i % 37] : 0) << "y[" << i << "]";
    }
  }
}

TEST_P(NormConformance, NanSpoilsItsOwnStatisticsAndNothingElse) {
  for (const std::int64_t width : {33, 48}) {
    CpuSession session(plan_of(trial(6, width, DType::f32)));
    fill(session, 7);
    const std::int64_t row = 2, group = width / groups_of(width);
    session.tensor<float>("x")[static_cast<std::size_t>(row * width)] = std::numeric_limits<float>::quiet_NaN();
    session.run();
    for (const char* name : {"y", "d/x"}) {
      const std::vector<double> result = read(session, name);
      for (std::size_t i = 0; i < result.size(); ++i) {
        const std::int64_t at = static_cast<std::int64_t>(i);
        bool expected = false;
        switch (info().reach) {
          case NormReach::element: expected = at == row * width; break;
          case NormReach::row: expected = at / width == row; break;
          case NormReach::batch_channel: expected = at % width == 0; break;
          case NormReach::batch: expected = true; break;
          case NormReach::sample_group:
            expected = at < 6 * width && at % width < (info().kind == NormKind::group    ? group
                                                       : info().kind == NormKind::sample ? width
                                                                                         : 1);
            break;
        }
        // The derivative of what is linear does not see x.
        if (info().kind == NormKind::mean && name == std::string_view("d/x")) expected = false;
        ASSERT_EQ(std::isnan(result[i]), expected) << name << "[" << i << "]";
      }
    }
  }
}

// Large enough for many tiles, so that the split over threads could show.
TEST_P(NormConformance, BitsDependNeitherOnMembersNorOnThreads) {
  const Trial trial = this->trial(701, 130, DType::f32);
  const std::shared_ptr<const Plan> plan = plan_of(trial);
  std::vector<std::vector<std::vector<double>>> alone;  // [member][result]
  for (int member = 0; member < 3; ++member) {
    CpuSession session(plan, {.members = 1, .threads = 1});
    fill(session, 10 + static_cast<std::uint64_t>(member));
    session.run();
    alone.emplace_back();
    for (const std::string& name : results_of(trial)) alone.back().push_back(read(session, name));
  }
  for (const int members : {1, 3}) {
    for (const int threads : {1, 2, 3}) {
      CpuSession session(plan, {.members = members, .threads = threads});
      for (int member = 0; member < members; ++member) {
        fill(session, 10 + static_cast<std::uint64_t>(member), 0, 1, member);
      }
      session.run();
      for (int member = 0; member < members; ++member) {
        const std::vector<std::string> names = results_of(trial);
        for (std::size_t k = 0; k < names.size(); ++k) {
          EXPECT_EQ(read(session, names[k], member), alone[static_cast<std::size_t>(member)][k])
              << names[k] << " of member " << member << " of " << members << " on " << threads << " threads";
        }
      }
    }
  }
}

// An input that dies at the norm may be written over; the result must not show it.
TEST_P(NormConformance, WritesOverADyingInput) {
  std::vector<std::vector<double>> results;
  for (const bool keep : {false, true}) {
    Graph graph;
    const Trial trial = this->trial(40, 96, DType::f32);
    const Wire x = graph.input("x", {shape_of(trial), trial.dtype}), twice = x * 2.0;
    const Wire y = apply_norm(info(), twice, declare_norm(graph, info(), trial.width, trial.dtype), settings_of(trial));
    graph.output("y", y);
    if (keep) graph.output("twice", twice);
    CpuSession session(test::plain_plan(graph));
    fill(session, 8);
    session.run();
    results.push_back(read(session, "y"));
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST_P(NormConformance, EachMemberHasItsOwnEpsilon) {
  if (info().eps == 0) return;
  Graph graph;
  const Trial trial = this->trial(6, 33);
  const Wire x = graph.input("x", {shape_of(trial), trial.dtype});
  NormSettings settings = settings_of(trial);
  settings.eps = graph.input("eps", {{1}, trial.dtype});
  graph.output("y", apply_norm(info(), x, declare_norm(graph, info(), trial.width, trial.dtype), settings));
  CpuSession session(test::plain_plan(graph), {.members = 2, .threads = 2});
  for (int member = 0; member < 2; ++member) {
    fill(session, 9, 0, 1, member);
    session.tensor<double>("eps", member)[0] = member == 0 ? 1e-5 : 50.0;
  }
  session.run();
  EXPECT_GT(largest(read(session, "y", 0)), 1.5 * largest(read(session, "y", 1)) * (centres(info()) ? 0.5 : 1));
}

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const NormInfo& info : norms()) result.emplace_back(info.name);
  return result;
}

INSTANTIATE_TEST_SUITE_P(Norms, NormConformance, testing::ValuesIn(names()),
                         [](const testing::TestParamInfo<std::string>& test) { return test.param; });

TEST(Norms, AreFoundByName) {
  EXPECT_EQ(norm("rms").kind, NormKind::rms);
  EXPECT_EQ(norm("rmsnorm").kind, NormKind::rms);
  EXPECT_EQ(name_of(NormKind::group), "group");
  const std::string message = error_of([] { norm("layr"); });
  EXPECT_NE(message.find("did you mean 'layer'?"), std::string::npos) << message;
}

}  // namespace
}  // namespace norma
