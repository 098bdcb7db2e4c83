// Intervals of shares of right answers, against planted truth.
#include "norma/lab/share.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace norma {
namespace {

// How often a model answers rightly depends on the record and on the seed: P = Phi(skill + seed + record). The truth is
// the mean over all seeds and records that could have been drawn.
struct Planted {
  double skill, seed, record;
  double truth() const { return 0.5 * std::erfc(-skill / std::sqrt(2 * (1 + seed * seed + record * record))); }
};

class Exam {
 public:
  Exam(const Planted& planted, unsigned study) : planted_(planted), random_(study) {}
  // `better`: how much more skill these models have.
  LossTable answers(std::size_t seeds, std::size_t records, double better = 0) {
    while (ease_.size() < records) ease_.push_back(planted_.record * normal());
    LossTable right;
    for (std::size_t s = 0; s < seeds; ++s) {
      const double seed = planted_.seed * normal();
      std::vector<double>& row = right.emplace_back();
      for (std::size_t r = 0; r < records; ++r)
        row.push_back(normal() < planted_.skill + better + seed + ease_[r] ? 1 : 0);
    }
    return right;
  }

 private:
  double normal() { return normal_(random_); }
  const Planted& planted_;
  std::mt19937 random_;
  std::normal_distribution<double> normal_;
  std::vector<double> ease_;
};

std::vector<RightShare> shares_of(const LossTable& right) {
  std::vector<RightShare> shares;
  for (const std::vector<double>& row : right) {
    const auto records = static_cast<double>(row.size());
    shares.push_back({std::accumulate(row.begin(), row.end(), 0.0) / records, records});
  }
  return shares;
}

bool covers(const Estimate& interval, double truth) { return interval.low <= truth && truth <= interval.high; }

struct Covered {
  double known = 0, counted = 0, seeds_alone = 0;
};

Covered coverage(const Planted& planted, std::size_t seeds, std::size_t records) {
  constexpr unsigned kStudies = 1500;
  Covered covered;
  for (unsigned study = 0; study < kStudies; ++study) {
    const LossTable right = Exam(planted, study).answers(seeds, records);
    std::vector<double> by_seed;
    for (const RightShare& one : shares_of(right)) by_seed.push_back(one.value);
    covered.known += covers(share_of(right), planted.truth()) ? 1.0 / kStudies : 0;
    covered.counted += covers(*mean_share(shares_of(right)), planted.truth()) ? 1.0 / kStudies : 0;
    covered.seeds_alone += covers(estimate_of(by_seed), planted.truth()) ? 1.0 / kStudies : 0;
  }
  return covered;
}

TEST(Share, IntervalsCoverSeedsAndTheRecordsThatWereHeldOut) {
  // Hard and easy records that all models agree on; seeds that differ; both; nearly all answers right.
  for (const Planted& planted :
       {Planted{0.8, 0.02, 2}, Planted{0.5, 0.3, 0.2}, Planted{0.5, 0.2, 1}, Planted{2.6, 0.1, 0.5}}) {
    for (const std::size_t seeds : {1u, 3u, 8u}) {
      if (seeds == 1 && planted.seed > 0.15) continue;  // one seed knows nothing of others
      const Covered covered = coverage(planted, seeds, 200);
      const double least = seeds == 3 ? 0.915 : 0.93;  // Satterthwaite's degrees are a little too many for three
      EXPECT_GE(covered.known, least) << planted.skill << " " << planted.seed << " " << seeds;
      EXPECT_GE(covered.counted, least) << planted.skill << " " << planted.seed << " " << seeds;
    }
  }
}

TEST(Share, SeedsAloneMissWhereRecordsDecide) {
  const Covered covered = coverage({0.8, 0.02, 2}, 8, 200);
  EXPECT_LT(covered.seeds_alone, 0.8) << "or the test above shows nothing";
}

TEST(Share, IntervalsAreNoWiderThanTheyMustBe) {
  // With few seeds' worth of luck: half the width of the interval of one model of 200 records at 0.5 is 0.069.
  const LossTable one = Exam({0, 0, 0}, 1).answers(1, 200);
  const Estimate interval = share_of(one);
  EXPECT_NEAR(interval.high - interval.low, 2 * 0.069, 0.01);
  EXPECT_EQ(interval.n, 1);
  // Where models answer independently, records shrink with their number; counts alone cannot know that.
  const LossTable many = Exam({0, 0, 0}, 2).answers(16, 200);
  const Estimate known = share_of(many), counted = *mean_share(shares_of(many));
  EXPECT_LT(known.high - known.low, 0.06);
  EXPECT_LT(known.high - known.low, counted.high - counted.low);
}

TEST(Share, AllRightIsNotSureToBeRight) {
  const Estimate single = *mean_share(std::vector<RightShare>{{1.0, 100}});
  EXPECT_EQ(single.mean, 1);
  EXPECT_EQ(single.high, 1);
  EXPECT_NEAR(single.low, 1 - 1.96 * 1.96 / (100 + 1.96 * 1.96), 2e-3) << "Wilson's end";
  const Estimate table = share_of(LossTable(3, std::vector<double>(100, 1.0)));
  EXPECT_NEAR(table.low, single.low, 1e-9);
  const Estimate none = share_of(LossTable(3, std::vector<double>(100, 0.0)));
  EXPECT_NEAR(none.high, 1 - single.low, 1e-9);
  EXPECT_EQ(none.low, 0);
}

TEST(Share, PairsOfEqualModelsAreToldApartNoMoreOftenThanTheLevelSays) {
  const Planted planted{0.5, 0.1, 1};
  constexpr unsigned kStudies = 1500;
  int apart = 0, found = 0;
  for (unsigned study = 0; study < kStudies; ++study) {
    Exam world(planted, study);
    const LossTable a = world.answers(5, 200), b = world.answers(5, 200), c = world.answers(5, 200, 0.5);
    apart += compare_pairs({a, b}, 0.05)[0].apart ? 1 : 0;
    found += compare_pairs({a, c}, 0.05)[0].apart ? 1 : 0;
  }
  EXPECT_LE(apart, 0.05 * kStudies + 4 * std::sqrt(kStudies * 0.05 * 0.95));
  EXPECT_GT(found, 0.95 * kStudies) << "ten points more";
}

TEST(Share, WithoutTheNumberOfRecordsSeedsAreAllThatIsKnown) {
  const double unknown = std::numeric_limits<double>::infinity();
  const Estimate shares = *mean_share(std::vector<RightShare>{{0.7, unknown}, {0.8, unknown}, {0.75, unknown}});
  EXPECT_NEAR(shares.mean, 0.75, 1e-12);
  EXPECT_LT(shares.low, 0.68);
  EXPECT_GT(shares.high, 0.82);
  const Estimate one = *mean_share(std::vector<RightShare>{{0.7, unknown}});
  EXPECT_EQ(one.low, one.high);
  EXPECT_FALSE(mean_share({}).has_value());
}

}  // namespace
}  // namespace norma
