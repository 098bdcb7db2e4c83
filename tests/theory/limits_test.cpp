// Where the theory ends: what it refuses, and how deep it goes.
#include "error_of.h"
#include "theory/branches.h"

namespace norma {
namespace {

using test::config;
using test::error_of;
using test::linear_branches;
using test::theory_of;

TEST(Theory, WhatHasNoRuleIsNamed) {
  const auto error = [](const std::string& scheme, NormKind norm = NormKind::layer) {
    try {
      propagate(test::scheme_named(scheme), linear_branches(1), config(4, norm));
    } catch (const NotPredictedError& caught) {
      return std::string(caught.what());
    }
    return std::string();
  };
  EXPECT_EQ(error("x + gate(f(x))"), "scheme 'formula': the theory has no rule for the function 'gate'");
  EXPECT_EQ(error("x + mean(x)*f(x)"),
            "scheme 'formula': the theory has no rule for the function 'mean': it is a number of the whole batch");
  EXPECT_EQ(error("x + x*f(x)"), "scheme 'formula': the theory has no rule for 'x*f(x)'");
  EXPECT_EQ(error("x + f(x) + f(norm(x))"),
            "scheme 'formula': the theory has no rule for a branch that is called twice with the same weights");
  EXPECT_EQ(error("realformer"), "scheme 'realformer': branches were not measured for scores that are carried");
  EXPECT_EQ(error("pre", NormKind::batch),
            "scheme 'pre': the theory has no rule for BatchNorm, whose statistics go beyond a token");
  EXPECT_EQ(error("ngpt"), "scheme 'ngpt': the theory has no rule for weights that are kept at unit length");
  const auto own = [&](const std::string& text) {
    try {
      propagate(parse_scheme("own", "title = \"Own\"\n" + text), linear_branches(1), config(4));
    } catch (const NotPredictedError& caught) {
      return std::string(caught.what());
    }
    return std::string();
  };
  EXPECT_EQ(own("sublayer = \"x = x + f(x); y = y + x\"\n[streams]\ny = \"x0 + 1\""),
            "scheme 'own': stream 'y' does not begin as a multiple of x0");
  EXPECT_EQ(own("layer = \"norm(w*x + attn(x) + ffn(x))\"\n[learned]\nw = { init = 1, profile = \"var(x)\" }"),
            "scheme 'own': 'w' is measured on data, but not per sublayer");
  EXPECT_EQ(own("sublayer = \"norm(w*x + f(x))\"\n[learned]\nw = { init = 1, profile = \"mean(x)\" }"),
            "scheme 'own': the theory has no rule for a profile that reads 'x' otherwise than by var");
  const std::string copies = "[streams]\nH = \"copies(x0, 2)\"\n[learned]\n";
  EXPECT_EQ(own("sublayer = \"x = weigh(sigmoid(dot(H, w)), H); H = H + spread(b, f(x))\"\n" + copies +
                "w = { init = 1, shape = \"d\" }\nb = { init = 1, shape = [\"2\"] }"),
            "scheme 'own': the theory has no rule for 'dot(H, w)'");
  EXPECT_EQ(own("sublayer = \"x = weigh(b, H); H = append(H, f(x))\"\n" + copies + "b = { init = 1, shape = [\"2\"] }"),
            "scheme 'own': the theory has no rule for 'weigh(b, H)'");
}

// Functions of numbers are followed from layer to layer, whichever they are.
TEST(Theory, FunctionsOfNumbersThatDifferBetweenLayersAreFollowed) {
  const Theory by_function = theory_of("x + tanh(1/l)*f(norm(x))", 3);
  const Theory by_number = theory_of(
      "x + (if l == 1 then 0.7615941559557649 else if l == 2 then 0.46211715726000975 else "
      "0.3215127375316343)*f(norm(x))",
      3);
  EXPECT_NEAR(by_function.output_rms, by_number.output_rms, 1e-12);
  EXPECT_NEAR(by_function.amplification, by_number.amplification, 1e-12);
  EXPECT_GT(by_function.amplification, 0);
}

TEST(Theory, OptionsInsideCallsCountAsThoseOfTables) {
  const Scheme scheme = test::scheme_named("x + f(norm(x), q = \"rmsnorm\", inner = \"norm\", scale = 2*l)");
  EXPECT_EQ(theory_of("x + f(norm(x), q = \"rmsnorm\")", 4).amplification, theory_of("x + f(norm(x))", 4).amplification)
      << "the same branches";
  const Scheme plain = with_options_in_tables(scheme);
  using Options = std::map<std::string, std::string>;
  EXPECT_EQ(plain.branch_options.at("attention"), (Options{{"q", "rmsnorm"}, {"inner", "norm"}, {"scale", "2*l"}}));
  EXPECT_EQ(plain.branch_options.at("ffn"), (Options{{"inner", "norm"}}));
  EXPECT_EQ(print_formula(*plain.formula("sublayer")), "x + f(norm(x))");
  EXPECT_EQ(
      error_of([] { theory_of("if l == 1 then f(x, q = \"norm\") else f(x)", 4); }),
      "scheme 'formula': the theory has no rule for attention that is called with different options in one stack");
}

TEST(Theory, DecodersNeedAFormulaForCrossAttention) {
  const Scheme scheme = parse_scheme("own", "title = \"Own\"\nlayer = \"x + attn(x) + ffn(x)\"");
  EXPECT_EQ(error_of([&] { check_predicted_encoder_decoder(scheme, config(2)); }),
            "scheme 'own' has no formula for decoders with cross-attention");
  EXPECT_EQ(error_of([&] { check_predicted_encoder_decoder(test::scheme_named("realformer"), config(2)); }),
            "scheme 'realformer': the theory has no rule for scores that are carried from layer to layer in "
            "cross-attention");
}

TEST(Theory, WhatHasNoMeaningIsAnError) {
  for (const char* formula : {"x + f(l)", "x + f()", "norm(f())", "norm(f(x, x))", "x + y", "x/0 + f(x)"})
    EXPECT_NE(error_of([&] { theory_of(formula, 2); }), "") << formula;
}

TEST(Theory, EverySchemeOfTheCatalogueIsPredictedOrSaysWhyNot) {
  int predicted = 0;
  for (const Scheme& scheme : catalogue()) {
    SCOPED_TRACE(scheme.name);
    try {
      const Theory theory = propagate(scheme, linear_branches(0.5), config(12));
      EXPECT_GT(theory.output_rms, 0);
      EXPECT_TRUE(std::isfinite(theory.amplification));
      for (const StreamTheory& stream : theory.streams) EXPECT_GT(stream.gradient_rms, 0);
      ++predicted;
    } catch (const NotPredictedError& error) {
      EXPECT_NE(std::string(error.what()).find(scheme.name), std::string::npos);
    }
  }
  EXPECT_GE(predicted, 37);
}

// How long it takes: norma bench --only theory.
TEST(Theory, ReachesTenThousandLayers) {
  for (const char* name : {"post", "lns", "keel", "siamese", "admin", "hc_static", "attnres"}) {
    const Theory theory = propagate(test::scheme_named(name), linear_branches(1), config(10000));
    EXPECT_EQ(theory.streams.size(), 20000u) << name;
    EXPECT_TRUE(std::isfinite(theory.output_rms)) << name;
    EXPECT_TRUE(std::isfinite(theory.amplification)) << name;
  }
}

}  // namespace
}  // namespace norma
