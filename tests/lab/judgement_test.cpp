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
  EXPECT_NE(sentence("pre").find("no faster than Pre-LN, slower than Post-LN"), std::string::npos) << sentence("pre");
  EXPECT_NE(sentence("post").find("as fast as Post-LN, faster than Pre-LN"), std::string::npos) << sentence("post");
  EXPECT_NE(sentence("post").find("expect to need warmup from 12 layers on"), std::string::npos) << sentence("post");
  EXPECT_NE(sentence("post", 64).find("By theory, from 12 to 96 layers of width 64, "), std::string::npos);
  EXPECT_EQ(sentence("deepnorm").find("expect to need warmup from 12 layers"), std::string::npos)
      << sentence("deepnorm");
  for (const char* scheme : {"pre", "post", "deepnorm", "rezero", "x + f(norm(x))/sqrt(l)"})
    EXPECT_TRUE(sentence(scheme).ends_with(".")) << sentence(scheme);
}

}  // namespace
}  // namespace norma
