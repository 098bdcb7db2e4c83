// What is handed on from sublayer to sublayer beside the stream: profiled values and scores.
#include "theory/branches.h"

namespace norma {
namespace {

using test::config;
using test::kEps;
using test::linear_branches;
using test::theory_of;

TEST(Theory, ProfiledValuesAreFoundSublayerBySublayer) {
  // Branches and normed streams have variance 1: omega_(k+1)^2 = omega_k^2 + 1.
  const Theory admin = theory_of("admin", 12), pre = theory_of("pre", 12);
  ASSERT_EQ(admin.profiled.size(), 24u);
  for (std::size_t k = 0; k < 24; ++k) {
    EXPECT_EQ(admin.profiled[k].name, "omega");
    EXPECT_EQ(admin.profiled[k].layer, static_cast<std::int64_t>(k / 2 + 1));
    EXPECT_NEAR(admin.profiled[k].value, std::sqrt(static_cast<double>(k + 1)), 1e-3) << k;
    EXPECT_NEAR(admin.streams[k].rms, 1, kEps);
  }
  EXPECT_NEAR(admin.amplification, pre.amplification, 1e-3) << "shares of the stream are those of Pre-LN";
  for (std::size_t k = 0; k < 24; ++k)
    EXPECT_NEAR(admin.branches[k].weight_gradient, pre.branches[k].weight_gradient, 1e-2) << k;
}

TEST(Theory, ProfilesMayBeAnyFunctionOfVariances) {
  const Scheme scheme = parse_scheme("own", R"toml(
title = "Own"
sublayer = "x + w*f(norm(x))"
[learned]
w = { init = 2, per = "sublayer", profile = "1/sqrt(var(x + w*f(norm(x))))" }
)toml");
  const Theory theory = propagate(scheme, linear_branches(1), config(2));
  double w = 2, variance = 1;
  for (const ProfiledTheory& value : theory.profiled) {
    EXPECT_NEAR(value.value, w, 1e-4);
    variance += w * w;
    w = 1 / std::sqrt(variance);
  }
  EXPECT_NEAR(theory.streams.back().rms, std::sqrt(variance), 1e-4);
}

TEST(Theory, CarriedScoresHandGradientsToEveryLayerBelow) {
  // Queries and keys pass `score` of a gradient at their own layer, values everything.
  const auto branches = [](double score) {
    BranchTables tables = linear_branches(1);
    CrossResponse response{.query = tables.plain.at("attention").at(1, 0)};
    response.query.gradient_own = response.query.gradient_shared = {score, 0};
    response.query.change_own = response.query.change_shared = {0, 0};
    response.gradient_own = response.change_own = {1, 0};
    response.gradient_shared = response.change_shared = {1, 1};
    tables.apart = CrossTable(0, 2, 2, 1, std::vector<CrossResponse>(4, response));
    return tables;
  };
  const Theory plain = theory_of("post", 6),
               carried = propagate(test::scheme_named("realformer"), branches(0), config(6));
  EXPECT_NEAR(carried.streams.front().gradient_rms, plain.streams.front().gradient_rms, 1e-9);
  EXPECT_NEAR(carried.amplification, plain.amplification, 1e-9);
  // Scores of layer l have variance l, and a softmax that sharp passes 1/l to each of the l inputs.
  const Theory theory = propagate(test::scheme_named("realformer"), branches(0.5), config(6));
  double gradient = 1, scores = 0;
  for (double l = 6; l >= 1; --l) {
    scores += 0.5 * gradient / 2 / l;
    gradient = gradient + scores;
    EXPECT_NEAR(theory.streams[static_cast<std::size_t>(2 * l - 2)].gradient_rms, std::sqrt(gradient), 1e-3) << l;
  }
}

}  // namespace
}  // namespace norma
