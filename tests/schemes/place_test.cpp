// The numbers of a scheme at a place, and what a scheme file may say about learned values, weights and the head.
#include "norma/schemes/place.h"

#include "check.h"
#include "schemes/named.h"

namespace norma {
namespace {

using test::error_of;

TEST(Place, CountsAndDepths) {
  const Scheme scheme = parse_scheme("mine", "sublayer = \"x\"\n[constants]\nhalf = \"n/2\"\nown = \"N\"");
  const Place encoder{.stack = StackKind::encoder, .layers = 12, .other_layers = 6, .width = 64, .heads = 4};
  Place decoder{.stack = StackKind::decoder, .layers = 6, .other_layers = 12, .width = 64, .heads = 4, .sublayers = 18};
  decoder.layer = 2;
  decoder.sublayer = 5;
  const Variables below = numbers_at(scheme, encoder), above = numbers_at(scheme, decoder);
  EXPECT_EQ(below.at("n"), 24);
  EXPECT_EQ(below.at("half"), 12);
  EXPECT_EQ(below.at("own"), 12);
  EXPECT_EQ(above.at("n"), 18) << "three sublayers per layer";
  EXPECT_EQ(above.at("own"), 6) << "the depth of the stack at hand";
  EXPECT_EQ(above.at("l"), 2);
  EXPECT_EQ(above.at("k"), 5);
  EXPECT_EQ(above.at("heads"), 4);
}

TEST(Place, ConstantsOfAStackSeeBothDepths) {
  const Scheme scheme = test::scheme_named("deepnorm");
  const Place encoder{.stack = StackKind::encoder, .layers = 18, .other_layers = 18};
  const Place decoder{.stack = StackKind::decoder, .layers = 18, .other_layers = 18};
  const Place single{.layers = 12};
  EXPECT_NEAR(numbers_at(scheme, encoder).at("alpha"), 1.999, 5e-4);
  EXPECT_NEAR(numbers_at(scheme, decoder).at("alpha"), 2.711, 5e-4);
  EXPECT_NEAR(numbers_at(scheme, single).at("alpha"), 2.213, 5e-4);
  const Place uneven{.stack = StackKind::encoder, .layers = 12, .other_layers = 6};
  EXPECT_NEAR(numbers_at(scheme, uneven).at("beta"), 0.87 * std::pow(std::pow(12.0, 4) * 6, -1.0 / 16), 1e-12);
}

TEST(Place, GivenConstantsReplaceTheSchemesOwn) {
  const Scheme scheme = test::scheme_named("completep");
  const Place place{.layers = 8, .width = 256};
  const Variables numbers = numbers_at(scheme, place, {{"base_depth", 2}});
  EXPECT_EQ(numbers.at("m_L"), 4);
  EXPECT_EQ(numbers.at("b"), 0.25);
  EXPECT_EQ(numbers.at("m_N"), 1);
  EXPECT_EQ(error_of([&] {
              numbers_at(scheme, place, {{"depth", 2}});
            }),
            "scheme 'completep' has no constant named 'depth'");
}

TEST(Place, ConstantsThatNeedOneAnotherAreRefused) {
  const Scheme scheme = parse_scheme("mine", "sublayer = \"x\"\n[constants]\na = \"b\"\nb = \"a\"");
  EXPECT_EQ(error_of([&] { numbers_at(scheme, Place{}); }),
            "scheme 'mine': the constants 'a' and others need one another");
}

TEST(Scheme, ShapesStoredValuesAndWeights) {
  const Scheme ngpt = test::scheme_named("ngpt");
  EXPECT_TRUE(ngpt.weights.unit);
  EXPECT_FALSE(ngpt.weights.biases);
  ASSERT_NE(ngpt.head.gain, nullptr);
  EXPECT_NE(ngpt.learned.at(0).stored, nullptr);
  const Scheme hc = test::scheme_named("hc_static");
  EXPECT_EQ(hc.learned.at(0).extent, LearnedSpec::Extent::listed);
  EXPECT_EQ(hc.learned.at(0).shape.size(), 1u);
}

TEST(Scheme, MistakesInNewTablesAreNamed) {
  const auto error = [](const std::string& rest) {
    return error_of([&] { parse_scheme("mine", "sublayer = \"x\"\n" + rest); });
  };
  EXPECT_EQ(error("[streams]\nr = \"x0\""), "scheme 'mine': no formula updates the stream 'r'");
  EXPECT_EQ(error("[learned]\ng = { init = 0, shape = [1, 2, 3] }"),
            "scheme 'mine': 'learned.g.shape' lists 3 sizes; expected one or two");
  EXPECT_EQ(error("[weights]\nbias = \"never\""),
            "scheme 'mine': 'weights.bias' is 'never'; expected one of zero, none");
  EXPECT_EQ(error("[head]\nscal = 1"), "scheme 'mine': unknown key 'head.scal' (did you mean 'scale'?)");
  EXPECT_EQ(error("[branch.ffn]\nq = \"norm\""), "scheme 'mine': unknown key 'branch.ffn.q'");
}

}  // namespace
}  // namespace norma
