// The nearest known name for an unknown one.
#include "norma/core/names.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace norma {
namespace {

const std::vector<std::string> kNames = {"layers.0.attn.out", "layers.0.ffn.in", "embedding", "loss"};

TEST(NearestName, FindsSlipsOfTheHand) {
  EXPECT_EQ(nearest_name("layers.0.atn.out", kNames), "layers.0.attn.out");
  EXPECT_EQ(nearest_name("embeding", kNames), "embedding");
  EXPECT_EQ(nearest_name("los", kNames), "loss");
  EXPECT_EQ(did_you_mean("lose", kNames), " (did you mean 'loss'?)");
}

TEST(NearestName, StaysSilentWhenNothingIsClose) {
  EXPECT_EQ(nearest_name("xyz", kNames), "");
  EXPECT_EQ(did_you_mean("quite another thing", kNames), "");
  EXPECT_EQ(nearest_name("anything", {}), "");
  const std::vector<std::string> letters = {"M", "N"};
  EXPECT_EQ(nearest_name("t", letters), "") << "every letter is as near as any other";
}

TEST(NearestName, BoundsTheWorkOnLongInput) {
  const std::string hostile(1 << 20, 'a');
  EXPECT_EQ(nearest_name(hostile, kNames), "");
  const std::vector<std::string> candidates = {hostile, "ab"};
  EXPECT_EQ(nearest_name("aa", candidates), "ab");
}

}  // namespace
}  // namespace norma
