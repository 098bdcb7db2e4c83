// `norma plan` against what a process really takes.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "cli/process.h"
#include "sanitized.h"

namespace norma {
namespace {

using test::Ended;
using test::TemporaryFolder;

class PlannedMemory : public testing::TestWithParam<std::vector<std::string>> {};

// `--measure` is a process of `norma train`, and the kernel says how much it had at most.
TEST_P(PlannedMemory, IsWhatARunTakes) {
  if (test::kSanitized) GTEST_SKIP() << "sanitizers keep memory of their own";
  const TemporaryFolder folder;
  std::vector<std::string> arguments = {"plan", "--measure", "--json"};
  arguments.insert(arguments.end(), GetParam().begin(), GetParam().end());
  const Ended outcome = test::run(folder, arguments);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto plan = nlohmann::json::parse(outcome.out);
  const auto& memory = plan["memory"];
  const double predicted = memory["total"], measured = plan["measured"]["memory"];
  // The smallest run ends with a page and a look for leaks, which take memory that larger ones have taken before.
  constexpr double kHeap = 2 << 20;
  EXPECT_NEAR(measured, predicted, 0.02 * predicted + kHeap) << memory.dump(1);
  const double later = std::max(memory["evaluation"].get<double>(), memory["judging"].get<double>());
  EXPECT_EQ(predicted, memory["training"].get<double>() + memory["thread_scratch"].get<double>() + later +
                           memory["snapshots"].get<double>() + memory["program"].get<double>() +
                           memory["process"].get<double>());
  EXPECT_GT(plan["measured"]["seconds_per_step"].get<double>(), 0);
  EXPECT_GT(plan["predicted"]["seconds_per_step"].get<double>(), 0);
}
INSTANTIATE_TEST_SUITE_P(
    Of, PlannedMemory,
    testing::Values(std::vector<std::string>{"--model.layers=2", "--model.width=32", "--model.heads=2"},
                    std::vector<std::string>{"--model.layers=4", "--model.width=256", "--model.heads=8",
                                             "--model.time=64"},
                    std::vector<std::string>{"--model.family=encoder_decoder", "--model.layers=2",
                                             "--members.seed=[1, 2]", "--detect.recovery=roll_back"}));

// What a process takes by itself is measured in a temporary folder.
TEST(PlanProcess, WithoutAPlaceForTemporaryFilesItSaysSo) {
  const TemporaryFolder folder;
  const char* const before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  setenv("TMPDIR", (folder / "missing").c_str(), 1);
  const Ended outcome = test::run(folder, {"plan", "--measure", "--model.layers=1"});
  const Ended unmeasured = test::run(folder, {"plan", "--model.layers=1"});
  before == nullptr ? unsetenv("TMPDIR") : setenv("TMPDIR", kept.c_str(), 1);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("no folder for temporary files"), std::string::npos) << outcome.err;
  EXPECT_EQ(unmeasured.code, 0) << "needs none: nothing runs";
}

TEST(PlanProcess, ShapesThatDoNotFitAreOneClearError) {
  const TemporaryFolder folder;
  const Ended outcome = test::run(folder, {"plan", "--measure", "--model.width=65", "--model.heads=2"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(outcome.err.starts_with("norma: ")) << outcome.err;
  EXPECT_NE(outcome.err.find("65"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("measured run"), std::string::npos) << outcome.err;
}

TEST(PlanProcess, CountsTheOperationsOfTheFormula) {
  const TemporaryFolder folder;
  const auto flops = [&](const std::string& scheme) {
    const Ended outcome = test::run(folder, {"plan", "--json", "--model.layers=2", "--model.width=32",
                                             "--model.heads=2", "--model.scheme=" + scheme});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out).at("flops_per_step").get<double>();
  };
  EXPECT_GT(flops("x + f(f(norm(x)))"), 1.5 * flops("pre"));
}

double seconds_of(const TemporaryFolder& folder, const std::vector<std::string>& arguments, Ended& outcome) {
  const auto start = std::chrono::steady_clock::now();
  outcome = test::run(folder, arguments);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

constexpr double kSoon =
    test::kSanitized ? 120 : 20;  // seconds, with room for a busy machine; on an idle one it is one

// What is said of one sample is of one: not of as many as a sequence would have tokens.
TEST(PlanProcess, CountsSamplesAndNodesWhereThereAreNoTokens) {
  const TemporaryFolder folder;
  struct Case {
    const char *family, *counted;
    double units;  // of a step
  };
  for (const Case& one : {Case{"resnet", "sample", 4}, Case{"mlp", "sample", 4}, Case{"dit", "sample", 4},
                          Case{"gcn", "node", 400}, Case{"decoder", "token", 4 * 64}}) {
    SCOPED_TRACE(one.family);
    const Ended outcome = test::run(
        folder, {"plan", "--json", std::string("--model.family=") + one.family, "--model.layers=3", "--model.width=8",
                 "--model.heads=2", one.family == std::string("gcn") ? "--model.batch=1" : "--model.batch=4"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto plan = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(plan["counted"], one.counted);
    EXPECT_NEAR(plan["flops_per_step"].get<double>() / plan["flops_per_token"].get<double>(), one.units, 1e-9);
  }
}

TEST(PlanProcess, RefusesWhatNeverFitsBeforeItIsPlanned) {
  const TemporaryFolder folder;
  for (const std::vector<std::string>& shape :
       {std::vector<std::string>{"--model.layers=1000000", "--model.width=8192", "--model.heads=64"},
        std::vector<std::string>{"--model.layers=64", "--model.width=16384", "--model.heads=64", "--model.time=8",
                                 "--model.batch=1"}}) {
    std::vector<std::string> arguments = {"plan"};
    arguments.insert(arguments.end(), shape.begin(), shape.end());
    Ended outcome;
    EXPECT_LT(seconds_of(folder, arguments, outcome), kSoon);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find("the parameters alone take"), std::string::npos) << outcome.err;
  }
}

TEST(PlanProcess, RunsNothing) {
  const TemporaryFolder folder;
  Ended outcome;
  // Its weights would fit; its activations, and a step of it, would not.
  EXPECT_LT(seconds_of(folder,
                       {"plan", "--json", "--model.layers=24", "--model.width=2048", "--model.heads=16",
                        "--model.time=2048", "--model.batch=4096"},
                       outcome),
            kSoon);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto plan = nlohmann::json::parse(outcome.out);
  EXPECT_GT(plan["memory"]["total"].get<double>(), 1e12);
  EXPECT_FALSE(plan.contains("measured") || plan.contains("predicted"));
}

TEST(PlanProcess, ContinuesStacksThatAreTooDeepToPlan) {
  const TemporaryFolder folder;
  const auto plan = [&](int layers) {
    Ended outcome;
    EXPECT_LT(seconds_of(folder,
                         {"plan", "--json", "--model.width=8", "--model.heads=1", "--model.batch=1", "--model.time=4",
                          "--model.layers=" + std::to_string(layers)},
                         outcome),
              kSoon);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  };
  const auto deep = plan(100000), shallow = plan(500);
  const double ratio = deep["parameters"].get<double>() / shallow["parameters"].get<double>();
  for (const char* key : {"training", "judging"}) {
    const double grown = deep["memory"][key].get<double>() / shallow["memory"][key].get<double>();
    EXPECT_GT(grown, 0.5 * ratio) << key;
    EXPECT_LT(grown, 2 * ratio) << key;
  }
  EXPECT_NEAR(deep["kernels"].get<double>() / shallow["kernels"].get<double>(), 200, 20);
}

}  // namespace
}  // namespace norma
