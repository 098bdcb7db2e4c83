// Second moments of sums, and their adjoint.
#include <gtest/gtest.h>

#include "theory/plan.h"

namespace norma {
namespace {

TEST(Theory, SumsAndTheirAdjointAgree) {
  // <g, M w> = <M^T g, w> for every pair of vectors, checked on their outer products.
  MomentFactors factors = {0.5, -2, 3};
  factors[kFactorOne] = 1;
  for (const int to : {1, 2}) {
    const std::array<double, 4> w = {1, 2, -1, 4}, g = {3, 1, -2, 0.5};
    std::array<double, 4> moved = w, pulled = g;
    moved[static_cast<std::size_t>(to)] = 0.5 * w[0] - 2 * w[2] + 3 * w[3];
    const double handed = g[static_cast<std::size_t>(to)];
    pulled[static_cast<std::size_t>(to)] = 0;
    pulled[0] += 0.5 * handed;
    pulled[2] -= 2 * handed;
    pulled[3] += 3 * handed;
    MomentMatrix<1> forward, backward;
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) {
        forward.set(i, j, {w[static_cast<std::size_t>(i)] * w[static_cast<std::size_t>(j)]});
        backward.set(i, j, {g[static_cast<std::size_t>(i)] * g[static_cast<std::size_t>(j)]});
      }
    }
    std::vector<TheoryInstruction> program = {{.to = to, .terms = {{0, {}}, {2, {}}, {3, {}}}}};
    plan_moments(program, std::vector<bool>(4, false));
    forward.run(program[0].forward, factors);
    backward.run(program[0].backward, factors);
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) {
        EXPECT_NEAR(forward.at(i, j)[0], moved[static_cast<std::size_t>(i)] * moved[static_cast<std::size_t>(j)],
                    1e-12);
        EXPECT_NEAR(backward.at(i, j)[0], pulled[static_cast<std::size_t>(i)] * pulled[static_cast<std::size_t>(j)],
                    1e-12);
      }
    }
  }
}

TEST(Theory, OnlyPairsThatAreReadArePlanned) {
  using Op = TheoryInstruction::Op;
  // Streams 0 and 1; 2 = norm(0), 3 = f(2), 0 = 0 + 3.
  std::vector<TheoryInstruction> program = {{.op = Op::norm, .to = 2, .terms = {{0, {}}}},
                                            {.op = Op::branch, .to = 3, .terms = {{2, {}}}},
                                            {.op = Op::combine, .to = 0, .terms = {{0, {}}, {3, {}}}}};
  const auto targets = [](const MomentSums& plan) {
    std::vector<int> found;
    for (const MomentSums::Sum& sum : plan.sums) {
      if (sum.target < kMomentPairs) found.push_back(sum.target);
    }
    std::sort(found.begin(), found.end());
    return found;
  };
  plan_moments(program, {false, false});
  EXPECT_EQ(targets(program[0].forward), std::vector<int>{moment_slot(2, 2)}) << "only a branch reads it";
  EXPECT_EQ(targets(program[1].forward), std::vector<int>{}) << "a branch is uncorrelated with all";
  EXPECT_EQ(targets(program[2].forward), (std::vector<int>{moment_slot(0, 0), moment_slot(0, 1)}));
  for (TheoryInstruction& instruction : program) instruction.forward = instruction.backward = {};
  plan_moments(program, {false, true});
  EXPECT_EQ(targets(program[2].forward), std::vector<int>{moment_slot(0, 0)}) << "nothing reads stream 1";
}

TEST(Theory, WhatWasOverwrittenIsForgotten) {
  // 0 = f(1): its old value has no gradient any more, and its new one nothing in common with 1.
  std::vector<TheoryInstruction> program = {{.op = TheoryInstruction::Op::branch, .to = 0, .terms = {{1, {}}}}};
  plan_moments(program, {false, false});
  MomentMatrix<1> forward, backward;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      forward.set(i, j, {5});
      backward.set(i, j, {7});
    }
  }
  forward.run(program[0].forward, {});
  EXPECT_EQ(forward.at(0, 1)[0], 0);
  EXPECT_EQ(forward.at(1)[0], 5);
  backward.run(program[0].backward, {});
  EXPECT_EQ(backward.at(0)[0], 0);
  EXPECT_EQ(backward.at(0, 1)[0], 0);
  EXPECT_EQ(backward.at(1)[0], 7);
}

}  // namespace
}  // namespace norma
