// Second moments of sums, and their adjoint.
#include <gtest/gtest.h>

#include "schemes/theory_moments.h"

namespace norma {
namespace {

TEST(Theory, SumsAndTheirAdjointAgree) {
  // <g, M w> = <M^T g, w> for every pair of vectors, checked on their outer products.
  const std::vector<TheoryInstruction::Term> terms = {{0, {}}, {2, {}}, {3, {}}};
  const double factors[] = {0.5, -2, 3};
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
    forward.assign_sum(to, terms, factors, 4);
    backward.pull_back(to, terms, factors, 4);
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

}  // namespace
}  // namespace norma
