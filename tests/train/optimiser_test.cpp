// What an optimiser reads each step: decay in its three forms, corrections, rectification.
#include "norma/train/optimiser.h"

#include <gtest/gtest.h>

#include <cmath>

#include "check.h"

namespace norma {
namespace {

using C = OptimiserControl;

TEST(ControlBlock, DecayTakesItsForm) {
  OptimiserConfig config{.weight_decay = 0.1};
  EXPECT_DOUBLE_EQ(control_block(config, 0.01, 0.5, 1)[C::shrink], 0.01 * 0.5 * 0.1);
  config.decay = Decay::independent;
  EXPECT_DOUBLE_EQ(control_block(config, 0.01, 0.5, 1)[C::shrink], 0.5 * 0.1) << "not scaled by the peak rate";
  EXPECT_EQ(control_block(config, 0.01, 0.5, 1)[C::l2], 0);
  config.decay = Decay::l2;
  EXPECT_EQ(control_block(config, 0.01, 0.5, 1)[C::shrink], 0);
  EXPECT_DOUBLE_EQ(control_block(config, 0.01, 0.5, 1)[C::l2], 0.1);
}

TEST(ControlBlock, AdamDecaysThroughTheGradientAndAdamWDoesNot) {
  const OptimiserConfig adamw{.name = OptimiserName::adamw, .weight_decay = 0.1};
  OptimiserConfig adam = adamw;
  adam.name = OptimiserName::adam;
  EXPECT_EQ(control_block(adamw, 0.01, 0.5, 1)[C::l2], 0);
  EXPECT_DOUBLE_EQ(control_block(adam, 0.01, 0.5, 1)[C::l2], 0.1);
  EXPECT_EQ(control_block(adam, 0.01, 0.5, 1)[C::shrink], 0);
  adam.decay = Decay::independent;
  EXPECT_DOUBLE_EQ(control_block(adam, 0.01, 0.5, 1)[C::shrink], 0.5 * 0.1) << "asked for by name";
}

TEST(ControlBlock, GroupsScaleDecoupledDecayWithTheirRate) {
  EXPECT_DOUBLE_EQ(optimiser_group({.decay = Decay::decoupled}, 0.5, 2, 3).shrink, 1.5);
  EXPECT_DOUBLE_EQ(optimiser_group({.decay = Decay::independent}, 0.5, 2, 3).shrink, 3);
  EXPECT_DOUBLE_EQ(optimiser_group({}, 0.5, 2, 3).eps, 2);
}

TEST(ControlBlock, CorrectionsFollowTheStep) {
  const ControlBlock control = control_block({.beta1 = 0.9, .beta2 = 0.98}, 1, 1, 7);
  EXPECT_DOUBLE_EQ(control[C::correction1], 1 - std::pow(0.9, 7));
  EXPECT_DOUBLE_EQ(control[C::correction2], 1 - std::pow(0.98, 7));
  EXPECT_EQ(control[C::active], 1);
  EXPECT_EQ(control[C::rectify], 1);
}

TEST(ControlBlock, RAdamRectifiesFromTheSixthStepOn) {
  const OptimiserConfig radam{.name = OptimiserName::radam, .beta2 = 0.98};
  EXPECT_EQ(control_block(radam, 1, 1, 5)[C::rectify], 0);
  EXPECT_GT(control_block(radam, 1, 1, 6)[C::rectify], 0);
  EXPECT_LT(control_block(radam, 1, 1, 6)[C::rectify], 0.3);
  EXPECT_NEAR(control_block(radam, 1, 1, 100000)[C::rectify], 1, 1e-9);
}

TEST(Optimisers, UnknownNamesSuggestTheNearest) {
  EXPECT_NE(test::error_of([] { optimiser_name("adamW"); }).find("did you mean 'adamw'?"), std::string::npos);
  EXPECT_NE(test::error_of([] { decay_kind("decouple"); }).find("did you mean 'decoupled'?"), std::string::npos);
}

}  // namespace
}  // namespace norma
