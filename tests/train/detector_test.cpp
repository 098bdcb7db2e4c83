// The divergence detector on made-up losses.
#include "norma/train/detector.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <random>

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

// Losses around 2.3 of a run that neither learns nor diverges, as batches of a few samples have them.
struct Noise {
  const char* name;
  std::function<double(std::mt19937_64&)> draw;
};

std::vector<Noise> noises() {
  const auto normal = [](double deviation) {
    return [=](std::mt19937_64& r) { return 2.3 + deviation * std::normal_distribution()(r); };
  };
  return {{"normal, deviation 1", normal(1)},
          {"normal, deviation 0.5", normal(0.5)},
          {"one exponential", [](auto& r) { return std::exponential_distribution(1 / 2.3)(r); }},
          {"mean of two exponentials", [](auto& r) { return std::gamma_distribution(2.0, 1.15)(r); }},
          {"log-normal", [](auto& r) { return std::lognormal_distribution(0.33, 1.0)(r); }}};
}

TEST(Detector, NoiseAloneIsNoDivergence) {
  for (const Noise& noise : noises()) {
    std::mt19937_64 random(1);
    int stopped = 0;
    for (int run = 0; run < 2000; ++run) {
      Detector detector({});
      for (int step = 0; step < 1000; ++step) {
        if (!detector.watch(noise.draw(random))) continue;
        ++stopped;
        break;
      }
    }
    EXPECT_LT(stopped, 2) << noise.name << ": of 2000 runs";
  }
}

// Behind 100 stationary steps a climb, or a jump to another level for good.
TEST(Detector, DivergenceIsFoundBehindNoise) {
  for (const Noise& noise : noises()) {
    std::mt19937_64 random(2);
    int late_climb = 0, late_jump = 0;
    for (int run = 0; run < 500; ++run) {
      const auto found = [&](auto rise) {
        Detector detector({});
        for (int step = 0; step < 400; ++step) {
          if (detector.watch(noise.draw(random) + (step < 100 ? 0 : rise(step - 100)))) return step - 100;
        }
        return 400;
      };
      late_climb += found([](int step) { return 0.1 * step; }) > 150 ? 1 : 0;
      late_jump += found([](int) { return 20.0; }) > 100 ? 1 : 0;
    }
    EXPECT_EQ(late_climb, 0) << noise.name << ": of 500 runs";
    EXPECT_EQ(late_jump, 0) << noise.name << ": of 500 runs";
  }
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

TEST(Detector, ItsStateHoldsWhatTheFirstWindowHasShown) {
  Detector first(kConfig), second(kConfig);
  for (const double loss : {2.0, 4.0, 3.0, 4.0, 3.0}) EXPECT_FALSE(first.watch(loss));
  ASSERT_TRUE(first.state().start);
  EXPECT_EQ(first.state().start->median, 3);
  EXPECT_NEAR(first.state().start->noise, std::sqrt(std::numbers::pi) * 2 / 4, 1e-12) << "two steps down in four";
  second.restore(first.state());
  for (const double loss : {3.6, 3.7, 3.6}) EXPECT_EQ(second.watch(loss), std::nullopt) << "noise explains it";
  Detector older(kConfig);
  Detector::State state = first.state();
  state.start.reset();
  older.restore(state);
  EXPECT_EQ(alarm(older, {3.6, 3.7, 3.6}), std::pair(1, Astray::risen)) << "as before noise was looked at";
}

TEST(Detector, AnOscillationThatGrowsFromTheStartIsFound) {
  Detector detector(DetectConfig{});
  std::vector<double> losses;
  for (int i = 0; i < 60; ++i) losses.push_back(2.3 + std::exp(0.3 * i) * (i % 2 == 0 ? 0.1 : 1));
  const auto found = alarm(detector, losses);
  ASSERT_TRUE(found);
  EXPECT_LE(found->first, 27);
}

}  // namespace
}  // namespace norma
