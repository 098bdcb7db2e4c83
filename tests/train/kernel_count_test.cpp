// What a scheme costs in kernels: constants on the residual cost none.
#include <map>

#include "norma/train/step.h"

#include <gtest/gtest.h>

namespace norma {
namespace {

ModelConfig model(const std::string& scheme, Family family) {
  return {.family = family,
          .layers = 4,
          .width = 24,
          .heads = 3,
          .vocabulary = 17,
          .batch = 2,
          .time = 8,
          .scheme = scheme};
}

std::map<std::string, int> kernels(const Plan& plan) {
  std::map<std::string, int> count;
  for (const Step& step : plan.steps())
    ++count[std::string(plan.nodes()[static_cast<std::size_t>(step.node)].op->name())];
  return count;
}

struct Pair {
  const char *plain, *scaled;
};

TEST(KernelCount, ConstantScalesCostNoKernelInEitherDirection) {
  // norm(alpha*x + f(x)) is norm(x + f(x)) with a scale, x + b*f(norm(x)) is x + f(norm(x)) with one.
  for (const Pair pair : {Pair{"post", "deepnorm"}, {"pre", "completep"}, {"pre", "depth_mup"}}) {
    for (const Family family : {Family::decoder, Family::encoder, Family::encoder_decoder}) {
      SCOPED_TRACE(std::string(pair.scaled) + ", " + std::string(name_of(family)));
      const ModelConfig plain = model(pair.plain, family), scaled = model(pair.scaled, family);
      EXPECT_EQ(kernels(*build_training_step(scaled).plan), kernels(*build_training_step(plain).plan));
      EXPECT_EQ(kernels(*build_evaluation_step(scaled).plan), kernels(*build_evaluation_step(plain).plan));
    }
  }
}

}  // namespace
}  // namespace norma
