// `norma plan` against what a process really takes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/process.h"
#include "sanitized.h"

namespace norma {
namespace {

using test::Outcome;
using test::TemporaryFolder;

TEST(PlanProcess, PredictsTheMemoryOfARun) {
  if (test::kSanitized) GTEST_SKIP() << "sanitizers keep memory of their own";
  const TemporaryFolder folder;
  const Outcome outcome = test::run(folder, {"plan", "--measure", "--json", "--model.layers=4", "--model.width=256",
                                             "--model.heads=8", "--model.time=128", "--model.batch=16"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto plan = nlohmann::json::parse(outcome.out);
  const double predicted = plan["memory"]["total"], measured = plan["measured"]["memory"];
  EXPECT_GT(predicted, 2e8);
  // Two parts in a hundred, and what the heap of any process keeps.
  EXPECT_NEAR(measured, predicted, 0.02 * predicted + 3e6);
  const double members = plan["memory"]["one_member"], scratch = plan["memory"]["thread_scratch"];
  EXPECT_EQ(predicted, members + scratch + plan["memory"]["program"].get<double>());
  EXPECT_GT(plan["predicted"]["seconds_per_step"].get<double>(), 0);
}

TEST(PlanProcess, CountsTheOperationsOfTheFormula) {
  const TemporaryFolder folder;
  const auto flops = [&](const std::string& scheme) {
    const Outcome outcome = test::run(folder, {"plan", "--json", "--model.layers=2", "--model.width=32",
                                               "--model.heads=2", "--model.scheme=" + scheme});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out).at("flops_per_step").get<double>();
  };
  EXPECT_GT(flops("x + f(f(norm(x)))"), 1.5 * flops("pre"));
}

TEST(PlanProcess, RefusesParametersThatNeverFit) {
  const TemporaryFolder folder;
  const Outcome outcome =
      test::run(folder, {"plan", "--model.layers=1000000", "--model.width=8192", "--model.heads=64"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("the parameters alone take"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace norma
