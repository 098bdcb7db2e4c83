// Scheme files: the catalogue reads, its constants have the published values, and mistakes are named.
#include "norma/schemes/scheme.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "check.h"
#include "norma/schemes/evaluate.h"
#include "places.h"

namespace norma {
namespace {

namespace fs = std::filesystem;
using test::error_of;

Scheme read_scheme(const std::string& name) {
  std::ifstream file(std::string(test::kSourceFolder) + "/schemes/" + name + ".toml");
  return parse_scheme(name, std::string(std::istreambuf_iterator<char>(file), {}));
}

const Expression& find(const std::vector<NamedExpression>& all, const std::string& name) {
  for (const NamedExpression& entry : all) {
    if (entry.name == name) return *entry.value;
  }
  throw std::runtime_error("no " + name);
}

double constant(const std::vector<NamedExpression>& all, const std::string& name, const Variables& variables) {
  return evaluate(find(all, name), variables, "");
}

TEST(Catalogue, EveryFileReadsAndEveryFormulaSurvivesTheRoundTrip) {
  int files = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(std::string(test::kSourceFolder) + "/schemes")) {
    if (entry.is_directory()) continue;  // schemes of one kind of branch
    SCOPED_TRACE(entry.path().filename().string());
    const Scheme scheme = read_scheme(entry.path().stem().string());
    EXPECT_NE(scheme.title, scheme.name) << "a title says more than the file name";
    EXPECT_NE(scheme.source, "");
    for (const auto& [key, formula] : scheme.formulas) {
      EXPECT_EQ(print_formula(formula), formula.text) << key;
      EXPECT_TRUE(same_formula(formula, parse_formula(print_formula(formula)))) << key;
    }
    ++files;
  }
  EXPECT_GE(files, 30);
}

TEST(Catalogue, DeepNormConstantsAreThePublishedOnes) {
  const Constants& c = read_scheme("deepnorm").constants;
  EXPECT_NEAR(constant(c.common, "alpha", {{"N", 12}}), 2.213, 5e-4);
  EXPECT_NEAR(constant(c.common, "beta", {{"N", 12}}), 0.3195, 5e-5);
  EXPECT_NEAR(constant(c.common, "alpha", {{"N", 100}}), 3.761, 5e-4);
  EXPECT_NEAR(constant(c.common, "beta", {{"N", 100}}), 0.188, 5e-4);
  const Variables both = {{"N", 18}, {"M", 18}};
  EXPECT_NEAR(constant(c.encoder, "alpha", both), 1.999, 5e-4);
  EXPECT_NEAR(constant(c.encoder, "beta", both), 0.3526, 1e-4);
  EXPECT_NEAR(constant(c.decoder, "alpha", both), 2.711, 5e-4);
  EXPECT_NEAR(constant(c.decoder, "beta", both), 0.2608, 5e-5);
}

TEST(Catalogue, AdminTorchAndSubLnConstantsAreThePublishedOnes) {
  const Scheme admin = read_scheme("admin_torch");
  for (const auto& [n, omega] : {std::pair{12.0, 2.017}, {24.0, 2.601}, {200.0, 6.075}}) {
    EXPECT_NEAR(evaluate(*admin.learned.at(0).init, {{"n", n}}, ""), omega, 5e-4) << n;
  }
  const Constants& sub = read_scheme("subln").constants;
  EXPECT_NEAR(constant(sub.common, "gamma", {{"N", 12}}), 1.783, 5e-4);
  EXPECT_NEAR(constant(sub.common, "gamma", {{"N", 24}}), 1.968, 5e-4);
}

TEST(Scheme, LearnedValuesAndOptions) {
  const Scheme rezero = read_scheme("rezero");
  ASSERT_EQ(rezero.learned.size(), 1u);
  EXPECT_EQ(rezero.learned[0].per, LearnedSpec::Per::layer);
  EXPECT_EQ(rezero.learned[0].decay, false);
  EXPECT_EQ(read_scheme("admin").learned.at(0).extent, LearnedSpec::Extent::width);
  EXPECT_NE(read_scheme("admin").learned.at(0).profile, nullptr);
  EXPECT_EQ(read_scheme("hybridnorm").branch_options.at("attention").at("v"), "norm");
  EXPECT_EQ(read_scheme("residual").streams.at(0).name, "r");
}

TEST(Scheme, MistakesAreNamed) {
  const auto error = [](const char* text) { return error_of([&] { parse_scheme("mine", text); }); };
  EXPECT_EQ(error("sublayr = \"x\""), "scheme 'mine': unknown key 'sublayr' (did you mean 'sublayer'?)");
  EXPECT_EQ(error("title = \"t\""), "scheme 'mine' has no formula; expected at least sublayer or layer");
  EXPECT_EQ(error("sublayer = \"x + f(\""),
            "scheme 'mine', sublayer: expected a value but found the end of the formula\n"
            "  x + f(\n"
            "        ^");
  EXPECT_EQ(error("sublayer = 3"), "scheme 'mine': 'sublayer' must be text in quotes");
  EXPECT_EQ(error("sublayer = \"x\"\nlayer = \"x\""), "scheme 'mine': give either layer or sublayer, not both");
  EXPECT_EQ(error("attention = \"x\""), "scheme 'mine' has no formula for ffn; give ffn or sublayer");
  EXPECT_EQ(error("sublayer = \"x + f(x)\"\n[learned]\ng = { init = 0 }"), "scheme 'mine': no formula uses learned.g");
  EXPECT_EQ(error("sublayer = \"x\"\n[learned]\ng = { init = 0, per = \"layr\" }"),
            "scheme 'mine': 'learned.g.per' is 'layr'; expected one of sublayer, layer, stack");
  EXPECT_EQ(error("sublayer = \"x\"\n[init.gain]\nvalu = 1"),
            "scheme 'mine': unknown key 'init.gain.valu' (did you mean 'value'?)");
  EXPECT_NE(error("sublayer = \"x").find("scheme 'mine', line 1: "), std::string::npos);
}

TEST(Scheme, NamesThatNothingReadsAreFound) {
  const auto unread = [](const std::string& formula, const std::string& more = "") {
    return unread_name(parse_scheme("mine", "sublayer = \"" + formula + "\"\n" + more)).value_or("");
  };
  EXPECT_EQ(unread("y = norm(x); x + f(x)"),
            "sublayer: nothing reads this 'y': use it in what follows, or leave it out\n"
            "  y = norm(x); x + f(x)\n"
            "  ^");
  EXPECT_EQ(unread("y = x + f(x)"),
            "sublayer: nothing reads this 'y': a formula ends with the new x, as in x + f(x)\n"
            "  y = x + f(x)\n"
            "  ^");
  for (const char* good :
       {"x + f(x)", "y = f(x); x + y", "y = f(x); y = y + x; x + y", "x = f(x); norm(x)", "x = f(x)"})
    EXPECT_EQ(unread(good), "") << good;
  EXPECT_NE(unread("y = f(x); y = x; x + y"), "") << "the first is replaced before anybody reads it";
  EXPECT_NE(unread("y = y + x; x = f(y); f(norm(y))", "[streams]\ny = \"x0\"").find("'x'"), std::string::npos);
  EXPECT_EQ(unread("y = y + f(x); x + f(x)", "[streams]\ny = \"x0\""), "") << "streams go on in the next sublayer";
}

TEST(Evaluate, NumbersConditionsAndMistakes) {
  EXPECT_DOUBLE_EQ(evaluate("(2*N)^(1/4)", {{"N", 8}}), 2);
  EXPECT_DOUBLE_EQ(evaluate("-2^2", {}), -4);
  EXPECT_DOUBLE_EQ(evaluate("if l <= floor(N/4) then 1 else 0", {{"l", 3}, {"N", 12}}), 1);
  EXPECT_DOUBLE_EQ(evaluate("clamp((t - 2000)/4000, 0, 1)", {{"t", 4000}}), 0.5);
  EXPECT_DOUBLE_EQ(evaluate("l > 1 and 1/(l - 1) < 3 or not 1", {{"l", 1}}), 0);
  EXPECT_EQ(error_of([] {
              evaluate("sqrt(lyer)", {{"layer", 1}});
            }),
            "'lyer' is not a number here (did you mean 'layer'?)\n"
            "  sqrt(lyer)\n"
            "       ^^^^");
  EXPECT_EQ(error_of([] {
              evaluate("1/(N - N)", {{"N", 2}});
            }),
            "this is inf with N = 2, not a finite number\n"
            "  1/(N - N)\n"
            "  ^^^^^^^^^");
  EXPECT_EQ(error_of([] { evaluate("sqrt(-1)", {}); }),
            "this is nan, not a finite number\n"
            "  sqrt(-1)\n"
            "  ^^^^^^^^");
  EXPECT_EQ(error_of([] { evaluate("min(1)", {}); }),
            "min takes 2 arguments but 1 was given\n"
            "  min(1)\n"
            "  ^^^^^^");
}

}  // namespace
}  // namespace norma
