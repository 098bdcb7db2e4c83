// Statistics against tables, and against planted truth: thousands of simulated studies.
#include "norma/lab/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace norma {
namespace {

TEST(Statistics, StudentsTFollowsTheTables) {
  EXPECT_NEAR(student_quantile(0.05, 1), 12.7062, 1e-4);
  EXPECT_NEAR(student_quantile(0.05, 4), 2.7764, 1e-4);
  EXPECT_NEAR(student_quantile(0.01, 10), 3.1693, 1e-4);
  EXPECT_NEAR(student_quantile(0.05, 1e6), 1.95997, 1e-4);
  EXPECT_NEAR(student_quantile(0.05, 2.5), 3.5747, 1e-4) << "degrees of freedom need not be whole";
  EXPECT_NEAR(student_tail(2.7764, 4), 0.05, 1e-5);
  EXPECT_EQ(student_tail(0, 3), 1);
  EXPECT_EQ(student_tail(std::numeric_limits<double>::infinity(), 3), 0);
  for (int nu = 1; nu <= 40; ++nu) EXPECT_NEAR(student_quantile(0.05, nu), student_t(nu), 0.02) << nu;
}

TEST(Statistics, CrossedMeansKnowBothSourcesOfVariance) {
  // Means by seed 1, 3; by batch 1, 2, 3.
  const CrossedMean both = crossed_mean({{0, 1, 2}, {2, 3, 4}});
  EXPECT_DOUBLE_EQ(both.mean, 2);
  EXPECT_DOUBLE_EQ(both.variance, 2.0 / 2 + 1.0 / 3);
  EXPECT_DOUBLE_EQ(both.degrees_of_freedom, (4.0 / 3) * (4.0 / 3) / (1.0 + 1.0 / 9 / 2));
  const CrossedMean one = crossed_mean({{0, 1, 2}});
  EXPECT_EQ(one.p_value(), 1) << "one seed tells nothing";
  EXPECT_EQ(one.interval().low, one.interval().high);
  EXPECT_EQ(crossed_mean({{1}, {3}}).degrees_of_freedom, 1) << "a single batch";
  EXPECT_EQ(crossed_mean({{0, 0}, {0, 0}}).p_value(), 1) << "the same to the last bit";
  EXPECT_EQ(crossed_mean({{1, 1}, {1, 1}}).p_value(), 0);
}

TEST(Statistics, LevelsStepDownAndIntervalsAgree) {
  // Seeds alone: differences with t about 40, 8 and 1.
  const auto table = [](double mean, double spread) {
    return LossTable{{mean - spread}, {mean}, {mean + spread}, {mean}, {mean + spread / 2}, {mean - spread / 2}};
  };
  const std::vector<PairedDifference> pairs = compare_pairs({table(1, 0.1), table(1.02, 0.07), table(3, 0.01)}, 0.05);
  ASSERT_EQ(pairs.size(), 3u);
  for (const PairedDifference& pair : pairs) {
    const bool excludes = pair.difference.low > 0 || pair.difference.high < 0;
    EXPECT_EQ(pair.apart, excludes) << pair.a << " " << pair.b;
    EXPECT_EQ(pair.apart, pair.adjusted_p <= 0.05);
    EXPECT_GE(pair.adjusted_p, pair.p);
  }
  EXPECT_FALSE(pairs[0].apart);
  EXPECT_TRUE(pairs[1].apart);
  EXPECT_TRUE(pairs[2].apart);
  EXPECT_LT(pairs[1].difference.high, 0) << "the first loses less";
}

TEST(Statistics, PairsThatCanStillBeEqualFollowFromGroupsOfEquals) {
  EXPECT_EQ(most_equal_pairs(2, 0), 1u);
  EXPECT_EQ(most_equal_pairs(3, 0), 3u);
  EXPECT_EQ(most_equal_pairs(3, 1), 1u) << "of three, two equal pairs would make the third";
  EXPECT_EQ(most_equal_pairs(3, 2), 1u);
  // Shaffer 1986, table 1, for five: 10, then 6 while four can be equal, 4 (three and two), 3, 2, 1.
  const std::vector<std::size_t> five = {10, 6, 6, 6, 6, 4, 4, 3, 2, 1};
  for (std::size_t apart = 0; apart < five.size(); ++apart) EXPECT_EQ(most_equal_pairs(5, apart), five[apart]) << apart;
  EXPECT_EQ(most_equal_pairs(8, 1), 21u);
}

TEST(Statistics, SeedsPayUntilStepsWouldTellMore) {
  const double alpha = 0.025;
  for (const std::size_t schemes : {2u, 3u, 8u, 20u}) {
    const auto expense = [&](int n) {
      const double pairs = static_cast<double>(schemes * (schemes - 1)) / 2;
      return student_quantile(alpha / pairs, n - 1) / std::sqrt(n) * (4 + n);
    };
    const int seeds = seeds_of_comparison(schemes, alpha, 4, 40);
    for (int n = 2; n <= 40; ++n) EXPECT_LE(expense(seeds), 1.05 * expense(n)) << schemes << " " << n;
    EXPECT_GT(expense(seeds - 1), expense(seeds));
    EXPECT_EQ(seeds_of_comparison(schemes, alpha, 4, 3), 3) << "no more than allowed";
  }
  EXPECT_EQ(seeds_of_comparison(2, alpha, 4, 16), 7);
  EXPECT_EQ(seeds_of_comparison(8, alpha, 4, 16), 10);
  EXPECT_GE(seeds_of_comparison(1, alpha, 4, 16), 2) << "nothing to compare";
}

TEST(Statistics, LogIntervalsAreNeverNegative) {
  const std::vector<double> values = {0.01, 1, 100};
  const Estimate estimate = log_estimate_of(values);
  EXPECT_NEAR(estimate.mean, 1, 1e-12);
  EXPECT_GT(estimate.low, 0);
  EXPECT_NEAR(estimate.low * estimate.high, 1, 1e-9);
  EXPECT_LT(estimate_of(values).low, 0) << "what the plain interval does";
}

// Losses of schemes that share what a seed and a batch do to all, and have effects of their own.
struct Truth {
  std::vector<double> mean;
  double shared_seed = 0.05, own_seed = 0.02, shared_batch = 0.1, own_batch = 0.01, rest = 0.01;
  int batches = 8;
};

class Simulation {
 public:
  explicit Simulation(const Truth& truth, unsigned seed) : truth_(truth), random_(seed) {
    for (int b = 0; b < truth.batches; ++b) {
      shared_batch_.push_back(truth.shared_batch * normal());
      own_batch_.emplace_back();
      for (std::size_t s = 0; s < truth.mean.size(); ++s) own_batch_.back().push_back(truth.own_batch * normal());
    }
    tables_.resize(truth.mean.size());
  }
  const std::vector<LossTable>& with_seeds(std::size_t seeds) {
    while (tables_[0].size() < seeds) {
      const double shared = truth_.shared_seed * normal();
      for (std::size_t s = 0; s < tables_.size(); ++s) {
        const double own = truth_.own_seed * normal();
        std::vector<double> row;
        for (std::size_t b = 0; b < shared_batch_.size(); ++b)
          row.push_back(truth_.mean[s] + shared + own + shared_batch_[b] + own_batch_[b][s] + truth_.rest * normal());
        tables_[s].push_back(row);
      }
    }
    return tables_;
  }

 private:
  double normal() { return normal_(random_); }
  const Truth& truth_;
  std::mt19937 random_;
  std::normal_distribution<double> normal_;
  std::vector<double> shared_batch_;
  std::vector<std::vector<double>> own_batch_;
  std::vector<LossTable> tables_;
};

// As a study does: more seeds while anything is tied, at most three looks.
int looks_until_apart(Simulation& simulation, double alpha) {
  std::size_t seeds = 5;
  for (int look = 1; look <= 3; ++look, seeds += seeds / 2) {
    for (const PairedDifference& pair : compare_pairs(simulation.with_seeds(seeds), alpha_of_look(alpha, look))) {
      if (pair.apart) return look;
    }
  }
  return 0;
}

TEST(Statistics, EqualSchemesAreToldApartNoMoreOftenThanTheLevelSays) {
  for (const std::size_t schemes : {2u, 5u}) {
    for (const double own_batch : {0.0, 0.05}) {
      const Truth truth{.mean = std::vector<double>(schemes, 2.0), .own_batch = own_batch};
      constexpr int kStudies = 3000;
      int apart = 0;
      for (int study = 0; study < kStudies; ++study) {
        Simulation simulation(truth, static_cast<unsigned>(1000 * schemes + static_cast<unsigned>(study)));
        apart += looks_until_apart(simulation, 0.05) > 0 ? 1 : 0;
      }
      // Four deviations of a share of 5 % above it.
      EXPECT_LE(apart, 0.05 * kStudies + 4 * std::sqrt(kStudies * 0.05 * 0.95)) << schemes << " " << own_batch;
    }
  }
}

TEST(Statistics, EqualSchemesAmongOthersThatDifferAreHardlyToldApart) {
  // Two groups of equals, far from each other, and one alone: levels have stepped down when the equals are looked at.
  const Truth truth{.mean = {2.0, 2.0, 2.0, 3.0, 3.0, 4.0}};
  constexpr int kStudies = 2000;
  int wrong = 0, right = 0;
  for (unsigned study = 0; study < kStudies; ++study) {
    Simulation simulation(truth, study);
    bool mistaken = false;
    for (const PairedDifference& pair : compare_pairs(simulation.with_seeds(8), 0.05)) {
      const bool equal = truth.mean[pair.a] == truth.mean[pair.b];
      mistaken = mistaken || (equal && pair.apart);
      right += !equal && pair.apart ? 1 : 0;
    }
    wrong += mistaken ? 1 : 0;
  }
  EXPECT_LE(wrong, 0.05 * kStudies + 4 * std::sqrt(kStudies * 0.05 * 0.95));
  EXPECT_EQ(right, 11 * kStudies) << "differences of fifty deviations of one seed";
}

TEST(Statistics, DifferentSchemesAreToldApart) {
  const Truth truth{.mean = {2.0, 2.2, 2.21}};
  int apart = 0;
  for (unsigned study = 0; study < 200; ++study) {
    Simulation simulation(truth, study);
    const std::vector<PairedDifference> pairs = compare_pairs(simulation.with_seeds(7), 0.025);
    apart += pairs[0].apart && pairs[1].apart ? 1 : 0;
  }
  EXPECT_GT(apart, 190) << "a difference of ten deviations of one seed";
}

TEST(Statistics, IntervalsCoverSeedsAndHeldOutSampling) {
  const Truth truth{.mean = {2.0, 2.0}};
  int covered = 0, seeds_alone = 0;
  constexpr int kStudies = 2000;
  for (unsigned study = 0; study < kStudies; ++study) {
    Simulation simulation(truth, study);
    const LossTable& table = simulation.with_seeds(5)[0];
    const Estimate both = crossed_mean(table).interval();
    covered += both.low <= 2 && 2 <= both.high ? 1 : 0;
    std::vector<double> by_seed;
    for (const std::vector<double>& row : table) by_seed.push_back(estimate_of(row).mean);
    const Estimate one = estimate_of(by_seed);
    seeds_alone += one.low <= 2 && 2 <= one.high ? 1 : 0;
  }
  EXPECT_GE(covered, 0.94 * kStudies);
  EXPECT_LT(seeds_alone, 0.94 * kStudies) << "the batches are part of the question";
}

}  // namespace
}  // namespace norma
