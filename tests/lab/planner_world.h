// Made-up schemes whose truth is known, and whole studies of them in microseconds.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "lab/study/planner.h"

namespace norma::test {

inline constexpr double kGuessing = 3.0;
inline constexpr std::int64_t kMapSteps = 100;
inline constexpr double kTokens = 256;

// The mean loss after so many steps at a rate; not finite: diverges.
using Curve = std::function<double(double lr, std::int64_t steps)>;

inline Curve falling(double end, double half_life = 100, double best = 1e-2) {
  return [=](double lr, std::int64_t steps) {
    const double detour = std::pow(std::log(lr / best), 2) * 0.05;
    return end + detour + (kGuessing - end) * std::exp2(-static_cast<double>(steps) / half_life);
  };
}
inline Curve starting_after(std::int64_t start) {
  return [=](double lr, std::int64_t steps) { return steps < start ? kGuessing : falling(1.5)(lr, steps - start); };
}
inline Curve hopeless() {
  return [](double, std::int64_t) { return kGuessing; };
}
inline Curve diverging_above(double largest, const Curve& below) {
  return [=](double lr, std::int64_t steps) {
    return lr > largest ? std::numeric_limits<double>::infinity() : below(lr, steps);
  };
}

class World {
 public:
  World(std::vector<Curve> schemes, unsigned seed, double seed_noise = 0.01, double batch_noise = 0.01)
      : schemes_(std::move(schemes)), random_(seed), seed_noise_(seed_noise), batch_noise_(batch_noise) {
    state_.map_steps = kMapSteps;
    state_.tuning_seeds = {1, 2};
    state_.tokens_per_step = kTokens;
    state_.guessing = kGuessing;
    for (std::size_t s = 0; s < schemes_.size(); ++s) {
      batches_.emplace_back();
      for (int b = 0; b < 16; ++b) batches_.back().push_back(batch_noise_ * normal());
      SchemeEvidence evidence{.scheme = std::to_string(s), .title = std::to_string(s), .layers = 12};
      for (const double lr : {1e-3, 3e-3, 1e-2, 3e-2}) {
        for (const std::int64_t warmup : {0, 30}) evidence.cells.push_back(cell(s, lr, warmup));
      }
      state_.schemes.push_back(std::move(evidence));
    }
    state_.finals.resize(schemes_.size());
  }

  void keep_to_grid() { state_.beyond_grid = false; }

  // A whole study with so many steps of all runs after the map.
  const StudyState& play(double budget_steps) {
    double left = budget_steps * kTokens;
    while (const std::optional<Round> round = next_round(state_, left)) {
      EXPECT_LE(round->member_steps() * kTokens, left) << "a round that is not paid for";
      left -= round->member_steps() * kTokens;
      play(*round);
      if (state_.played.size() > 60) {
        ADD_FAILURE() << "no end of rounds";
        break;
      }
    }
    return state_;
  }

  std::vector<const Round*> rounds(Stage stage) const {
    std::vector<const Round*> all;
    for (const PlayedRound& played : state_.played) {
      if (played.round.stage == stage) all.push_back(&played.round);
    }
    return all;
  }

 private:
  double normal() { return normal_(random_); }

  RoundRun run(std::size_t scheme, double lr, std::int64_t warmup, std::int64_t seed, std::int64_t steps) {
    const double mean = schemes_[scheme](lr, steps);
    const double loss = mean >= kGuessing || !std::isfinite(mean) ? mean : mean + seed_noise_ * normal();
    return {.scheme = scheme,
            .lr = lr,
            .warmup = warmup,
            .seed = seed,
            .diverged = !std::isfinite(loss),
            .learned = loss < kGuessing - 0.02,
            .guesses = std::abs(loss - kGuessing) <= 0.02,
            .loss = loss};
  }

  TrainedCell cell(std::size_t scheme, double lr, std::int64_t warmup) {
    TrainedCell cell{.lr = lr, .warmup = warmup, .loss = {}};
    std::vector<double> losses;
    for (const std::int64_t seed : state_.tuning_seeds) {
      const RoundRun one = run(scheme, lr, warmup, seed, kMapSteps);
      ++cell.runs;
      cell.diverged += one.diverged ? 1 : 0;
      cell.not_learned += !one.diverged && !one.learned ? 1 : 0;
      if (!one.diverged) losses.push_back(one.loss);
    }
    if (!losses.empty()) cell.loss = estimate_of(losses);
    return cell;
  }

  void play(const Round& round) {
    PlayedRound played{.round = round};
    for (const RoundEntry& entry : round.entries) {
      for (const std::int64_t seed : entry.seeds) {
        played.runs.push_back(run(entry.scheme, entry.lr, entry.warmup, seed, round.steps));
        if (round.stage != Stage::final) continue;
        std::vector<double> row;
        for (const double batch : batches_[entry.scheme])
          row.push_back(played.runs.back().loss + batch + 0.002 * normal());
        state_.finals[entry.scheme].push_back(row);
      }
    }
    state_.played.push_back(std::move(played));
  }

  std::vector<Curve> schemes_;
  std::mt19937 random_;
  double seed_noise_, batch_noise_;
  std::normal_distribution<double> normal_;
  std::vector<std::vector<double>> batches_;  // what each does to a scheme
  StudyState state_;
};

}  // namespace norma::test
