// The theory's sentence about a scheme.
#include "norma/lab/judgement.h"

#include <gtest/gtest.h>

#include "norma/lab/inspect.h"

namespace norma {
namespace {

std::string sentence(const char* scheme, std::int64_t width = 128) {
  ModelConfig model = initial_model("decoder", width);
  model.scheme = scheme;
  return judge_by_theory(model);
}

TEST(Judgement, PlacesASchemeBetweenPreAndPost) {
  EXPECT_NE(sentence("pre").find("as fast as Pre-LN, slower than Post-LN"), std::string::npos) << sentence("pre");
  EXPECT_NE(sentence("post").find("as fast as Post-LN, faster than Pre-LN"), std::string::npos) << sentence("post");
  EXPECT_NE(sentence("post").find("expect to need warmup from 12 layers on"), std::string::npos) << sentence("post");
  EXPECT_NE(sentence("post", 64).find("By theory, from 12 to 96 layers of width 64, "), std::string::npos);
  EXPECT_EQ(sentence("deepnorm").find("expect to need warmup from 12 layers"), std::string::npos)
      << sentence("deepnorm");
  for (const char* scheme : {"pre", "post", "deepnorm", "rezero", "x + f(norm(x))/sqrt(l)"})
    EXPECT_TRUE(sentence(scheme).ends_with(".")) << sentence(scheme);
}

TEST(Judgement, WhatGrowsExponentiallyIsNoPower) {
  const std::string twice = sentence("2*x + f(norm(x))");
  EXPECT_NE(twice.find("Its stream grows 4 times with every layer: from about 32 layers on"), std::string::npos)
      << twice;
  EXPECT_NE(sentence("x + f(x)").find("grows exponentially with depth"), std::string::npos) << sentence("x + f(x)");
  EXPECT_NE(sentence("f(x)").find("deep models pass nothing on"), std::string::npos) << sentence("f(x)");
  for (const char* scheme : {"pre", "post", "deepnorm", "rezero", "x + 0.3*f(norm(x))", "x + f(norm(x))/sqrt(l)"}) {
    EXPECT_EQ(sentence(scheme).find("exponentially"), std::string::npos) << sentence(scheme);
    EXPECT_EQ(sentence(scheme).find("Its stream"), std::string::npos) << sentence(scheme);
  }
}

}  // namespace
}  // namespace norma
