// The one entry to the theory: what it reads of a model, and that depths, stacks and constants count.
#include "norma/theory/predict.h"

#include <gtest/gtest.h>

#include <cmath>

#include "check.h"

namespace norma {
namespace {

ModelConfig small_model(const char* scheme, Family family = "decoder") {
  ModelConfig model{.family = family, .layers = 3, .width = 16, .heads = 2, .time = 8, .scheme = scheme};
  model.embedding_std = 0.5;
  model.positions = Positions::none;
  return model;
}

TEST(Predict, IsWhatAPredictorSaysAtTheModelsDepth) {
  const ModelConfig model = small_model("deepnorm");
  const Prediction once = predict(model), again = ModelTheory(model).at(model.layers);
  EXPECT_EQ(once.streams.size(), 6u);
  EXPECT_EQ(once.amplification, again.amplification);
  EXPECT_EQ(once.layers, 3);
  EXPECT_NE(ModelTheory(model).at(6).amplification, once.amplification);
}

TEST(Predict, TheStreamEntersAsTheModelsTablesBegin) {
  ModelConfig model = small_model("x + f(x)");
  EXPECT_DOUBLE_EQ(predict(model).input_rms, 0.5);
  model.scale_embedding = true;
  EXPECT_DOUBLE_EQ(predict(model).input_rms, 2);
  model.positions = Positions::learned;
  EXPECT_DOUBLE_EQ(predict(model).input_rms, std::sqrt(4 + 0.25));
  model.positions = Positions::sinusoidal;
  EXPECT_DOUBLE_EQ(predict(model).input_rms, std::sqrt(4 + 0.5));
}

// A final norm divides the output and its change alike.
TEST(Predict, AmplificationIsOfAnOutputOfRmsOne) {
  const Prediction plain = predict(small_model("x + f(norm(x))")), normed = predict(small_model("pre"));
  EXPECT_NEAR(normed.output_rms, 1, 1e-3);
  EXPECT_GT(plain.output_rms, 1.2);
  EXPECT_NEAR(normed.amplification / plain.amplification, 1, 0.01);
}

TEST(Predict, ConstantsThatAModelGivesCount) {
  ModelConfig model = small_model("deepnorm"), given = model;
  given.constants = {{"alpha", 3}};
  EXPECT_NE(predict(given).amplification, predict(model).amplification);
  given.constants = {{"alhpa", 3}};
  EXPECT_NE(test::error_of([&] { predict(given); }).find("no constant named 'alhpa' (did you mean 'alpha'?)"),
            std::string::npos);
}

TEST(Predict, BothStacksStandInOrderAndHaveTheirOwnDepths) {
  ModelConfig model = small_model("pre", "encoder_decoder");
  model.encoder_layers = 2;
  const Prediction both = predict(model);
  ASSERT_EQ(both.streams.size(), 2u * 2 + 3u * 3);
  EXPECT_EQ(both.branches[0].kind, &branch_kind("attention"));
  EXPECT_EQ(both.branches[5].kind, &branch_kind("cross")) << "the decoder comes last";
  EXPECT_EQ(ModelTheory(model).at(3).streams.size(), 2u * 3 + 3u * 3);
}

TEST(Predict, SharesAreThoseOfTheFormula) {
  const ModelTheory theory(small_model("x + f(norm(x))/4"));
  const Prediction found = theory.at(2);
  const std::vector<double> shares = theory.shares(found);
  ASSERT_EQ(shares.size(), 4u);
  EXPECT_DOUBLE_EQ(shares[0], found.branches[0].rms / 4 / found.input_rms);
  EXPECT_DOUBLE_EQ(shares[3], found.branches[3].rms / 4 / found.streams[2].rms);
  EXPECT_TRUE(ModelTheory(small_model("x + tanh(x) + f(norm(x))")).shares(found).empty()) << "no such formula";
}

TEST(Predict, ExponentsAreSlopesOfPredictions) {
  std::vector<Prediction> all;
  const ModelTheory theory(small_model("x + f(norm(x))"));
  for (const std::int64_t depth : {4, 8, 16}) all.push_back(theory.at(depth));
  std::vector<double> n, rms;
  for (const Prediction& one : all) {
    n.push_back(static_cast<double>(one.layers));
    rms.push_back(one.streams.back().rms);
  }
  EXPECT_DOUBLE_EQ(exponents_of(all).stream_rms, log_slope(n, rms));
  EXPECT_GT(exponents_of(all).stream_rms, 0.3);
}

TEST(Predict, WhatHasNoRuleIsNamedBeforeAnythingIsMeasured) {
  ModelConfig model = small_model("ngpt");
  model.width = 1 << 14;  // measuring that would take minutes
  EXPECT_NE(test::error_of([&] { predict(model); }).find("weights that are kept at unit length"), std::string::npos);
}

}  // namespace
}  // namespace norma
