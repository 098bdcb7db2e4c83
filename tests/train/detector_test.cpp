// The divergence detector on made-up losses.
#include "norma/train/detector.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace norma {
namespace {

const DetectConfig kConfig{.window = 5, .spike = 1, .rise = 0.5, .patience = 3};

// Feeds losses; returns the step (from 1) and reason of the first alarm.
std::optional<std::pair<int, Astray>> alarm(Detector& detector, const std::vector<double>& losses) {
  for (std::size_t i = 0; i < losses.size(); ++i) {
    if (const auto why = detector.watch(losses[i])) return std::pair{static_cast<int>(i) + 1, *why};
  }
  return std::nullopt;
}

TEST(Detector, IsInDoubtBeforeItIsSure) {
  Detector detector({.window = 3, .spike = 1, .rise = 1, .patience = 3});
  for (const double loss : {3.0, 2.0, 2.0, 2.0}) EXPECT_FALSE(detector.watch(loss));
  EXPECT_FALSE(detector.in_doubt());
  EXPECT_FALSE(detector.watch(9));
  EXPECT_TRUE(detector.in_doubt());
  EXPECT_FALSE(detector.watch(2));
  EXPECT_FALSE(detector.in_doubt());
  Detector rising({.window = 3, .spike = 0, .rise = 1, .patience = 3});
  for (const double loss : {3.0, 3.5, 3.5, 3.5}) EXPECT_FALSE(rising.watch(loss));
  EXPECT_TRUE(rising.in_doubt());
}

TEST(Detector, NonFiniteLossesAreSeenAtOnce) {
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Detector detector(kConfig);
    EXPECT_EQ(alarm(detector, {5, 4, bad}), std::pair(3, Astray::not_finite));
    EXPECT_EQ(detector.watch(4, bad), Astray::gradient_not_finite);
    EXPECT_EQ(detector.watch(bad, bad), Astray::not_finite) << "the loss is what came first";
  }
}

TEST(Detector, ALossThatFallsOrStaysIsFine) {
  Detector detector(kConfig);
  std::vector<double> losses;
  for (int i = 0; i < 200; ++i) losses.push_back(4 - 0.01 * i + 0.3 * std::sin(i));
  EXPECT_EQ(alarm(detector, losses), std::nullopt);
  Detector flat(kConfig);
  EXPECT_EQ(alarm(flat, std::vector<double>(500, 3.3)), std::nullopt) << "not learning is not diverging";
}

TEST(Detector, ASpikeThatRecoversIsCountedButForgiven) {
  Detector detector(kConfig);
  EXPECT_EQ(alarm(detector, {4, 3.9, 3.8, 3.7, 3.6, 9, 9, 3.5, 3.4, 8, 3.4}), std::nullopt);
  EXPECT_EQ(detector.spikes(), 2);
}

TEST(Detector, ASpikeThatLastsIsDivergence) {
  Detector detector(kConfig);
  EXPECT_EQ(alarm(detector, {4, 3.9, 3.8, 3.7, 3.6, 9, 9, 9, 9}), std::pair(8, Astray::spiked));
}

TEST(Detector, ASlowRiseAboveTheStartIsDivergence) {
  Detector detector(kConfig);
  std::vector<double> losses;
  for (int i = 0; i < 100; ++i) losses.push_back(4 + 0.02 * i);
  const auto found = alarm(detector, losses);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->second, Astray::risen);
}

TEST(Detector, ALossThatClimbsFromTheStartIsNoSpike) {
  Detector detector({.window = 5, .spike = 1, .rise = 0.5, .patience = 100});
  EXPECT_EQ(alarm(detector, {3, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8}), std::pair(6, Astray::risen));
}

TEST(Detector, ZeroTurnsARuleOff) {
  DetectConfig off = kConfig;
  off.spike = off.rise = 0;
  Detector detector(off);
  std::vector<double> losses(10, 3);
  losses.resize(100, 50);
  EXPECT_EQ(alarm(detector, losses), std::nullopt);
}

TEST(Detector, ItsStateIsEnoughToGoOn) {
  std::vector<double> losses = {4, 3.9, 3.8, 3.7, 3.6, 9, 9, 9, 9};
  for (std::size_t cut = 0; cut < 7; ++cut) {
    Detector first(kConfig);
    for (std::size_t i = 0; i < cut; ++i) EXPECT_FALSE(first.watch(losses[i]));
    Detector second(kConfig);
    second.restore(first.state());
    const std::vector<double> rest(losses.begin() + static_cast<std::ptrdiff_t>(cut), losses.end());
    EXPECT_EQ(alarm(second, rest), std::pair(8 - static_cast<int>(cut), Astray::spiked)) << cut;
  }
}

}  // namespace
}  // namespace norma
