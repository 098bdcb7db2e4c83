// Singular values against matrices that have known ones, and the published toy of ReZero.
#include "norma/lab/jacobian.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numbers>

#include "lab/lab_check.h"
#include "norma/core/random.h"
#include "norma/lab/singular_values.h"

namespace norma {
namespace {

TEST(SingularValues, OfADiagonalBetweenTwoRotations) {
  const std::size_t n = 7;
  std::vector<double> matrix(n * n, 0), expected;
  for (std::size_t i = 0; i < n; ++i) {
    matrix[i * n + i] = std::pow(10.0, -static_cast<double>(i));
    expected.push_back(matrix[i * n + i]);
  }
  const auto rotate = [&](bool rows, std::size_t p, std::size_t q, double angle) {
    for (std::size_t i = 0; i < n; ++i) {
      double& a = rows ? matrix[p * n + i] : matrix[i * n + p];
      double& b = rows ? matrix[q * n + i] : matrix[i * n + q];
      const double x = a;
      a = std::cos(angle) * x - std::sin(angle) * b;
      b = std::sin(angle) * x + std::cos(angle) * b;
    }
  };
  for (std::size_t p = 0; p + 1 < n; ++p) rotate(p % 2 == 0, p, p + 1, 0.3 + static_cast<double>(p));
  const std::vector<double> found = singular_values(matrix, n);
  for (std::size_t i = 0; i < n; ++i) EXPECT_NEAR(found[i] / expected[i], 1, 1e-6) << i;
}

// As PyTorch starts its encoder layers: the packed projection of queries, keys and values is one matrix with a fan-out
// three times as large, and feed-forward biases are uniform.
class PyTorchStart final : public Weights {
 public:
  PyTorchStart(std::shared_ptr<const Weights> weights, double width, double hidden)
      : weights_(std::move(weights)), width_(width), hidden_(hidden) {}
  int members() const override { return weights_->members(); }
  void load(Session& session, const std::vector<ParameterSpec>& specs) const override {
    weights_->load(session, specs);
    for (const ParameterSpec& spec : specs) {
      const bool first = spec.name.ends_with("ffn.in.bias"), second = spec.name.ends_with("ffn.out.bias");
      for (int member = 0; member < session.members(); ++member) {
        const RandomStream stream(static_cast<std::uint64_t>(member), spec.name);
        const double bound = 1 / std::sqrt(first ? width_ : hidden_);
        if (spec.role == "query_key_value")
          transform(session, spec.name, member, [](std::size_t, double w) { return w / std::numbers::sqrt2; });
        if (first || second)
          transform(session, spec.name, member,
                    [&](std::size_t i, double) { return bound * (2 * stream.uniform(i) - 1); });
      }
    }
  }

 private:
  std::shared_ptr<const Weights> weights_;
  double width_, hidden_;
};

// The toy of the ReZero paper: width 16, 4 tokens, 4 heads, hidden 64, Xavier uniform, no final norm. Mean squared
// singular value of each draw.
std::vector<double> toy(const char* scheme, std::int64_t layers, int draws, std::int64_t width = 16) {
  ModelConfig model = test::theory_model(scheme, layers, width, 4);
  model.hidden = 4 * width;
  model.batch = 32;
  model.vocabulary = 4096;
  model.weights = WeightInit::xavier_uniform;
  Subject subject = test::theory_subject(model, draws);
  subject.weights = std::make_shared<PyTorchStart>(subject.weights, width, 4 * width);
  if (width > 16) return measure_isometry(subject, StackEnd::before_final, 4);
  std::vector<double> means;
  for (const std::vector<double>& values : exact_singular_values(subject, StackEnd::before_final))
    means.push_back(mean_square(values));
  return means;
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Where the mean of ten draws falls in 95 of 100 cases, by drawing tens from what was drawn.
Estimate mean_of_ten(const std::vector<double>& draws) {
  const RandomStream stream(1, "bootstrap");
  std::vector<double> means;
  for (std::uint64_t sample = 0; sample < 1000; ++sample) {
    double sum = 0;
    for (std::uint64_t i = 0; i < 10; ++i) sum += draws[stream.below(sample * 10 + i, draws.size())] / 10;
    means.push_back(sum);
  }
  std::sort(means.begin(), means.end());
  return {.mean = estimate_of(draws).mean, .low = means[25], .high = means[975], .n = 10};
}

void expect_published(double published, const std::vector<double>& draws) {
  const Estimate ours = mean_of_ten(draws);
  EXPECT_LE(ours.low, published) << "mean " << ours.mean << ", median " << median_of(draws);
  EXPECT_GE(ours.high, published) << "mean " << ours.mean << ", median " << median_of(draws);
  testing::Test::RecordProperty(fmt::format("published_{}", published),
                                fmt::format("mean {:.4g} [{:.4g}, {:.4g}] of ten, median {:.4g}", ours.mean, ours.low,
                                            ours.high, median_of(draws)));
}

TEST(ReZeroToy, OfReZeroIsThePublishedOne) {
  const double shallow = estimate_of(toy("x + 0.1*f(x)", 12, 10)).mean;
  const double deep = estimate_of(toy("x + 0.1*f(x)", 128, 10)).mean;
  EXPECT_NEAR(shallow / 1.059, 1, 0.02);
  EXPECT_NEAR(deep / 2.142, 1, 0.15);
  RecordProperty("rezero", fmt::format("{:.4g} at 12 layers, {:.4g} at 128", shallow, deep));
}

// The published numbers are means of ten draws from distributions with heavy tails.
TEST(ReZeroToy, OfPreLNIsThePublishedOne) {
  const std::vector<double> shallow = toy("pre", 12, 40);
  EXPECT_NEAR(estimate_of(shallow).mean / 10.242, 1, 0.3);
  expect_published(10.242, shallow);
  // At 128 layers single draws differ by a factor of 100 and the mean follows the largest; the median is what repeats.
  const std::vector<double> deep = toy("pre", 128, 30);
  EXPECT_GT(median_of(deep), 66.281 / 2.5);
  EXPECT_LT(median_of(deep), 66.281 * 2.5);
  testing::Test::RecordProperty("pre_128_layers",
                                fmt::format("median {:.4g}, mean {:.4g}", median_of(deep), estimate_of(deep).mean));
}

TEST(ReZeroToy, OfPostLNIsThePublishedOneAndAnEffectOfWidth) {
  expect_published(0.810, toy("post", 12, 40));
  const double narrow = median_of(toy("post", 128, 20)), wide = median_of(toy("post", 128, 5, 64));
  EXPECT_LT(narrow, 0.01);
  EXPECT_GT(wide, 30 * narrow) << "each norm removes two of d directions: fewer when d is large; narrow " << narrow;
  testing::Test::RecordProperty("post_128_layers", fmt::format("width 16: {:.3g}, width 64: {:.3g}", narrow, wide));
}

TEST(Isometry, ProjectionsAgreeWithAllSingularValues) {
  ModelConfig model = test::theory_model("pre", 4, 16, 4);
  model.batch = 1;
  const Subject subject = test::theory_subject(model, 2);
  const std::vector<double> projected = measure_isometry(subject, StackEnd::after_final, 400);
  for (std::size_t member = 0; member < 2; ++member) {
    const double exact = mean_square(exact_singular_values(subject)[member]);
    EXPECT_NEAR(projected[member] / exact, 1, 0.1);
  }
}

}  // namespace
}  // namespace norma
