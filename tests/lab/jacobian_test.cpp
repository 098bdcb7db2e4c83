// Singular values against matrices that have known ones, and the published toy of ReZero.
#include "norma/lab/jacobian.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numbers>

#include "error_of.h"
#include "lab/analyses/lanczos.h"
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

// Shares of singular values at or above each bin, from the top.
std::vector<double> from_the_top(const LogHistogram& histogram) {
  std::vector<double> sums(histogram.share.size());
  double sum = 0;
  for (std::size_t bin = sums.size(); bin-- > 0;) sums[bin] = sum += histogram.share[bin];
  return sums;
}

double lower_edge(const LogHistogram& histogram, std::size_t bin) {
  const double bins = static_cast<double>(histogram.share.size());
  return std::pow(10, histogram.low + (histogram.high - histogram.low) * static_cast<double>(bin) / bins);
}

TEST(Histogram, CountsByOrderOfMagnitude) {
  const LogHistogram histogram = log_histogram({1, 0.8, 1.3, 2, 1e-9, 0, 1e9, 100});
  EXPECT_DOUBLE_EQ(histogram.share[16], 3.0 / 8) << "1 lies in the middle of its bin";
  EXPECT_DOUBLE_EQ(histogram.share[17], 1.0 / 8);
  EXPECT_DOUBLE_EQ(histogram.share[24], 1.0 / 8);
  EXPECT_DOUBLE_EQ(histogram.share.front(), 2.0 / 8);
  EXPECT_DOUBLE_EQ(histogram.share.back(), 1.0 / 8);
  LogHistogram spread;
  spread.add_between(std::pow(10, -0.25), 1, 0.3);
  EXPECT_NEAR(spread.share[15], 0.15, 1e-12);
  EXPECT_NEAR(spread.share[16], 0.15, 1e-12);
  EXPECT_TRUE(std::isnan(log_histogram({1, INFINITY}).share[3]));
}

TEST(Histogram, BelongsToAllValuesOfASmallModel) {
  ModelConfig model = test::theory_model("post", 2, 16, 4);
  const Subject subject = test::theory_subject(model, 2);
  const SingularValueHistogram found = measure_singular_values(subject);
  ASSERT_TRUE(found.exact);
  ASSERT_EQ(found.members.size(), 2u);
  EXPECT_EQ(found.members[1].share, log_histogram(exact_singular_values(subject)[1]).share);
  EXPECT_NEAR(found.members[0].share.front(), 2.0 / 16, 1e-12) << "a norm removes two directions of each token";
}

// Above what it leaves unresolved, quadrature finds the shares of all values.
TEST(Histogram, ProjectionsAgreeWithAllSingularValues) {
  for (const char* scheme : {"pre", "post"}) {
    const Subject subject = test::theory_subject(test::theory_model(scheme, 4, 32, 8), 2);
    const SingularValueHistogram exact = measure_singular_values(subject, StackEnd::before_final);
    const SingularValueHistogram found =
        measure_singular_values(subject, StackEnd::before_final, {.most_exact = 0, .steps = 40});
    ASSERT_TRUE(exact.exact);
    ASSERT_FALSE(found.exact);
    for (std::size_t member = 0; member < 2; ++member) {
      const LogHistogram& histogram = found.members[member];
      const std::vector<double> expected = from_the_top(exact.members[member]), sums = from_the_top(histogram);
      EXPECT_NEAR(sums[0] + histogram.unresolved, 1, 1e-9) << scheme;
      EXPECT_LT(histogram.unresolved, 0.4) << scheme;
      for (std::size_t bin = 0; bin < sums.size(); ++bin) {
        if (lower_edge(histogram, bin) < histogram.unresolved_below) continue;
        EXPECT_NEAR(sums[bin], expected[bin], 0.08) << scheme << " from " << lower_edge(histogram, bin);
      }
    }
  }
}

TEST(Histogram, OfAnIdentityIsOneBin) {
  const Subject subject = test::theory_subject(test::theory_model("rezero", 3, 32, 8), 1);
  const SingularValueHistogram found = measure_singular_values(subject, StackEnd::after_final, {.most_exact = 0});
  EXPECT_NEAR(found.members[0].share[16], 1, 1e-9) << "all are 1";
  EXPECT_EQ(found.members[0].unresolved, 0) << "the iterations have ended with all there is";
}

TEST(Histogram, OfSequencesThatTouchIsThatOfTheBatch) {
  ModelConfig model = test::theory_model("pre", 2, 16, 4);
  model.norm = NormKind::batch;
  const Subject subject = test::theory_subject(model, 1);
  EXPECT_FALSE(measure_singular_values(subject).exact);
  EXPECT_NE(test::error_of([&] { exact_singular_values(subject); }).find("touch"), std::string::npos);
}

TEST(GaussRule, OfChebyshevPolynomialsIsKnown) {
  const std::size_t n = 12;
  Tridiagonal matrix{.a = Vector(n, 0), .b = Vector(n - 1, 0.5)};
  matrix.b[0] = std::numbers::sqrt2 / 2;
  const std::vector<GaussNode> rule = gauss_rule(matrix);
  for (std::size_t i = 0; i < n; ++i) {
    const double angle = std::numbers::pi * (2 * static_cast<double>(n - i) - 1) / (2 * static_cast<double>(n));
    EXPECT_NEAR(rule[i].node, std::cos(angle), 1e-13);
    EXPECT_NEAR(rule[i].weight, 1.0 / static_cast<double>(n), 1e-13);
  }
  matrix.a[3] = NAN;
  EXPECT_TRUE(std::isnan(gauss_rule(matrix)[0].node));
}

TEST(Lanczos, FindsAllOfASmallMatrix) {
  const Vector diagonal = {-3, 0.5, 0.5, 2, 7};
  const auto product = [&](std::vector<Vector> z) {
    for (std::size_t i = 0; i < diagonal.size(); ++i) z[0][i] *= diagonal[i];
    return z;
  };
  const std::vector<Tridiagonal> found = lanczos(product, {{1, 1, 1, 2, 1}}, {.steps = 9, .basis = Basis::kept});
  const std::vector<GaussNode> rule = gauss_rule(found[0]);
  const std::vector<GaussNode> expected = {{-3, 1.0 / 8}, {0.5, 2.0 / 8}, {2, 4.0 / 8}, {7, 1.0 / 8}};
  ASSERT_EQ(rule.size(), expected.size()) << "it ends when there is no more";
  for (std::size_t i = 0; i < rule.size(); ++i) {
    EXPECT_NEAR(rule[i].node, expected[i].node, 1e-9);
    EXPECT_NEAR(rule[i].weight, expected[i].weight, 1e-9);
  }
}

}  // namespace
}  // namespace norma
