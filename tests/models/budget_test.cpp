// Parameter budgets against counts written out by hand.
#include "norma/models/budget.h"

#include "check.h"
#include "schemes/named.h"

namespace norma {
namespace {

TEST(Budget, NormsOfOneStack) {
  const StackConfig config{.branches = transformer_layer(), .layers = 6, .heads = 8};
  const std::int64_t d = 512;
  const auto budget = [&](const char* name) { return stack_budget(test::scheme_named(name), config, d); };
  // Two norms per layer, each with gain and bias; Pre-LN adds a final one, Peri-LN doubles, ReZero has none.
  EXPECT_EQ(budget("post").norm_instances, 12);
  EXPECT_EQ(budget("post").norm_parameters, 12 * 2 * d);
  EXPECT_EQ(budget("pre").norm_instances, 13);
  EXPECT_EQ(budget("peri").norm_instances, 25);
  EXPECT_EQ(budget("rezero").norm_instances, 0);
  EXPECT_EQ(budget("residual").norm_instances, 13);
  EXPECT_EQ(budget("keel").norm_parameters, (12 + 11) * d) << "gain only, and the first sublayer has no outer norm";
}

TEST(Budget, WeightsAndLearnedValues) {
  const StackConfig config{.branches = transformer_layer(), .layers = 3, .heads = 4};
  const std::int64_t d = 64, branches = 3 * (4 * d * d + 4 * d + 2 * 4 * d * d + 4 * d + d);
  EXPECT_EQ(stack_budget(test::scheme_named("post"), config, d).stack_parameters, branches + 6 * 2 * d);
  EXPECT_EQ(stack_budget(test::scheme_named("rezero"), config, d).stack_parameters, branches + 3);
  EXPECT_EQ(stack_budget(test::scheme_named("layerscale"), config, d).stack_parameters, branches + 7 * 2 * d + 6 * d);
  EXPECT_EQ(stack_budget(test::scheme_named("pre_to_post"), config, d).stack_parameters, branches + (2 * 6 + 1) * 2 * d)
      << "a branch called twice has one set of weights";
}

TEST(Budget, NormsInsideBranches) {
  const StackConfig config{.branches = transformer_layer(), .layers = 3, .heads = 4};
  const std::int64_t d = 64, layers = 3, final_norm = 2 * d;
  const auto parameters = [&](const char* name) {
    return stack_budget(test::scheme_named(name), config, d).norm_parameters;
  };
  // Sub-LN: an inner norm of width d and one of width 4d in each layer, beside the two of Pre-LN.
  EXPECT_EQ(parameters("subln"), layers * 2 * (2 * d + d + 4 * d) + final_norm);
  // NormFormer: two norms around attention, one before and one inside the feed-forward branch.
  EXPECT_EQ(parameters("normformer"), layers * 2 * (3 * d + 4 * d) + final_norm);
  // HybridNorm: q, k, v per head (width 16, gains shared by heads) and one before the feed-forward branch.
  EXPECT_EQ(parameters("hybridnorm"), layers * 2 * (3 * 16 + d) + final_norm);
  // OLMo 2: gains only; q and k over the full width, and one norm on each branch's output.
  EXPECT_EQ(parameters("olmo2"), layers * (2 * d + 2 * d) + d);
}

TEST(Budget, EverySchemeOfTheCatalogueBuildsOrSaysWhyNot) {
  int built = 0;
  for (const Scheme& scheme : catalogue()) {
    SCOPED_TRACE(scheme.name);
    try {
      EXPECT_GT(stack_budget(scheme, {.branches = transformer_layer(), .layers = 5, .heads = 2}, 16).stack_parameters,
                0);
      ++built;
    } catch (const NotBuiltError& error) {
      EXPECT_NE(std::string(error.what()).find(scheme.name), std::string::npos);
    }
  }
  EXPECT_EQ(built, static_cast<int>(catalogue().size()));
}

TEST(Stack, MistakesInAFormulaAreShownWithACaret) {
  const auto error = [](const char* formula) {
    return test::error_of([&] {
      stack_budget(test::scheme_named(formula), {.branches = transformer_layer(), .layers = 2, .heads = 2}, 8);
    });
  };
  EXPECT_EQ(error("x + f(nrm(x))"),
            "scheme 'formula': there is no function 'nrm' here (did you mean 'norm'?)\n"
            "  x + f(nrm(x))\n"
            "        ^^^^^^");
  EXPECT_EQ(error("x + f(norm(y))"),
            "scheme 'formula': 'y' is not known here; a constant is a number, as in x + 0.5*f(x), or has a name under "
            "[constants] in a scheme file\n"
            "  x + f(norm(y))\n"
            "             ^");
  EXPECT_EQ(error("f(l) + x"),
            "scheme 'formula': this is a number; expected a wire such as x\n"
            "  f(l) + x\n"
            "    ^");
  EXPECT_EQ(error("if x > 1 then x else f(x)"),
            "scheme 'formula': > needs numbers, but 'x' is a wire\n"
            "  if x > 1 then x else f(x)\n"
            "     ^^^^^");
  EXPECT_EQ(error("floor(x) + f(x)"),
            "scheme 'formula': floor is a function of numbers, but 'x' is a wire\n"
            "  floor(x) + f(x)\n"
            "  ^^^^^^^^");
}

}  // namespace
}  // namespace norma
