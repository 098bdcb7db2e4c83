// What a run keeps of its scheme, and what counts as another scheme.
#include "norma/train/kept_scheme.h"

#include <gtest/gtest.h>

namespace norma {
namespace {

TEST(KeptScheme, TitlesSourcesAndCommentsAreNoDifference) {
  EXPECT_EQ(scheme_difference("sublayer = \"x + f(x)\"\n", "sublayer = \"x + f(x)\"\n"), std::nullopt);
  EXPECT_EQ(scheme_difference("title = \"A\"\nsublayer = \"x + f(x)\"\n",
                              "# why\nsource = \"B\"\nsublayer   =   'x + f(x)'\n"),
            std::nullopt);
}

TEST(KeptScheme, TheFirstDifferenceIsNamed) {
  const std::string base = "sublayer = \"x + a*f(x)\"\n[constants]\na = \"2\"\n";
  EXPECT_EQ(scheme_difference(base, "sublayer = \"x + a*f(x)\"\n[constants]\na = \"3\"\n"),
            "constants.a was '2', now it is '3'");
  EXPECT_EQ(scheme_difference(base, base + "[lr]\nattention = \"2\"\n"), "lr.attention was nothing, now it is '2'");
  EXPECT_EQ(scheme_difference(base + "[lr]\nattention = \"2\"\n", base), "lr.attention was '2', now it is nothing");
}

TEST(KeptScheme, AFormulaKeepsNothing) {
  EXPECT_EQ(scheme_to_keep("x + f(norm(x))"), "");
  EXPECT_NE(scheme_to_keep("pre").find("sublayer"), std::string::npos);
  EXPECT_EQ(scheme_of_run("/no/such/run"), nullptr);
}

}  // namespace
}  // namespace norma
