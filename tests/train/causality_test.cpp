// Models that see what they are to predict are found, and no others.
#include "norma/train/causality.h"

#include <gtest/gtest.h>

#include "error_of.h"
#include "norma/core/error.h"
#include "norma/train/cohort.h"
#include "norma/train/result.h"
#include "norma/train/trainer.h"
#include "temporary_folder.h"

namespace norma {
namespace {

ModelConfig model_of(const SchemeChoice& scheme, NormKind norm = NormKind::layer, Family family = "decoder") {
  ModelConfig model{.family = family, .layers = 6, .width = 64, .heads = 4};
  model.vocabulary = 100;
  model.time = 32;
  model.scheme = scheme;
  model.norm = norm;
  return model;
}

SchemeChoice scheme_from(const std::string& toml) {
  SchemeLibrary library;
  library.put("mine", toml, SchemeLibrary::Rank::first);
  return library.find("mine");
}

TEST(Causality, NoSchemeOfTheCatalogueLeaks) {
  for (const SchemeEntry& entry : SchemeLibrary().all()) {
    const std::string& name = entry.name;
    EXPECT_EQ(leak_of(model_of(name), 1000).value_or(""), "") << name;
    EXPECT_EQ(leak_of(model_of(name, NormKind::layer, "encoder_decoder"), 1000).value_or(""), "") << name;
  }
}

TEST(Causality, NormsOverPositionsLeak) {
  for (const NormKind kind : {NormKind::batch, NormKind::instance, NormKind::group}) {
    const auto leak = leak_of(model_of("pre", kind), 1000);
    ASSERT_TRUE(leak) << name_of(kind);
    EXPECT_NE(leak->find("over positions"), std::string::npos) << *leak;
    EXPECT_EQ(leak_of(model_of("pre", kind, "encoder"), 1000), std::nullopt) << "an encoder may see everything";
    ModelConfig one = model_of("pre", kind);
    one.time = 1;
    EXPECT_EQ(leak_of(one, 1000), std::nullopt) << "there is nothing later";
  }
  for (const NormKind kind : {NormKind::rms, NormKind::scale, NormKind::dyt, NormKind::weightless})
    EXPECT_EQ(leak_of(model_of("pre", kind), 1000), std::nullopt) << name_of(kind);
}

TEST(Causality, NothingHidesBehindAZeroAScheduleOrAFormula) {
  EXPECT_TRUE(
      leak_of(model_of(scheme_from("sublayer = \"x + g*f(batchnorm(x))\"\n[learned]\ng = { init = 0 }\n")), 1000))
      << "a scalar that starts at 0";
  EXPECT_TRUE(leak_of(model_of(scheme_from("sublayer = \"x + (1-s)*f(norm(x)) + s*f(batchnorm(x))\"\n"
                                           "[constants]\ns = \"clamp((t - 800)/100, 0, 1)\"\n")),
                      1000))
      << "only from step 800 on";
  const auto mean = leak_of(model_of("x + f(norm(x))/sqrt(1 + var(x))"), 1000);
  ASSERT_TRUE(mean) << "a number of the whole batch";
  EXPECT_NE(mean->find("all positions at once"), std::string::npos) << *mean;
  EXPECT_TRUE(leak_of(model_of("if l == N then x + f(batchnorm(x)) else x + f(norm(x))"), 1000)) << "in the last layer";
}

RunConfig tiny_run(NormKind kind) {
  RunConfig config;
  for (const char* setting : {"model.layers=1", "model.width=32", "model.heads=1", "model.batch=4", "model.time=8",
                              "train.steps=3", "train.threads=1", "data.evaluation_batches=2"})
    override_config(config, setting);
  config.model.norm = kind;
  return config;
}

TEST(Causality, ARunThatLeaksIsRefusedUnlessAskedForAndThenNamed) {
  const test::TemporaryFolder folder;
  RunObserver observer;
  const std::atomic<bool> stop{false};
  RunConfig config = tiny_run(NormKind::batch);
  const std::string error =
      test::error_of([&] { run_training({.config = config, .directory = folder / "run"}, observer, stop); });
  EXPECT_NE(error.find("see what it is to predict"), std::string::npos) << error;
  EXPECT_NE(error.find("train.leaks=\"allow\""), std::string::npos) << error;
  EXPECT_FALSE(std::filesystem::exists(folder / "run")) << "nothing was begun";
  override_config(config, "train.leaks=allow");
  run_training({.config = config, .directory = folder / "run"}, observer, stop);
  EXPECT_EQ(read_result(RunView(folder / "run").result(), "it").members[0].outcome, Outcome::leaks);
  run_training({.config = tiny_run(NormKind::rms), .directory = folder / "other"}, observer, stop);
  EXPECT_NE(read_result(RunView(folder / "other").result(), "it").members[0].outcome, Outcome::leaks);
}

TEST(Outcome, BelowTheOptimumIsAnErrorBeyondWhatBatchesExplain) {
  MemberState state;
  state.evaluation_loss = 0.9;
  state.evaluation_margin = 0.05;
  EXPECT_EQ(outcome_of(state, 3.0, 1.0), Outcome::below_optimum);
  state.evaluation_margin = 0.2;
  EXPECT_EQ(outcome_of(state, 3.0, 1.0), Outcome::stable) << "lucky batches";
  state.evaluation_margin.reset();
  EXPECT_EQ(outcome_of(state, 3.0, 1.0), Outcome::stable) << "one batch tells nothing";
  state.evaluation_margin = 0.05;
  EXPECT_EQ(outcome_of(state, 3.0, std::nullopt), Outcome::stable) << "no optimum is known";
  EXPECT_EQ(outcome_of(state, 3.0, 0.95), Outcome::stable);
}

}  // namespace
}  // namespace norma
