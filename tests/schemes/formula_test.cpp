// The formula language: parse, print back, precedence, carets, and bounds on hostile input.
#include "norma/schemes/formula.h"

#include "check.h"

namespace norma {
namespace {

using test::error_of;

// Canonical formulas: printing what was parsed gives the text back.
class Canonical : public testing::TestWithParam<const char*> {};

TEST_P(Canonical, SurvivesTheRoundTrip) {
  const Formula formula = parse_formula(GetParam());
  EXPECT_EQ(print_formula(formula), GetParam());
  EXPECT_TRUE(same_formula(formula, parse_formula(print_formula(formula))));
}

INSTANTIATE_TEST_SUITE_P(Formulas, Canonical,
                         testing::Values("norm(x + f(x))", "x + f(norm(x))", "norm(alpha*x + f(x))", "x + g*f(x)",
                                         "x + f(norm(x)/sqrt(l))", "y = f(x); x = norm(x + y); d = d + y",
                                         "if l <= floor(N/4) then norm(x + f(x)) else x + f(norm(x))",
                                         "(1 - s)*(x + f(norm(x))) + s*norm(x + f(x))",
                                         "u = norm(x + attn(x)); norm(x + u + ffn(u))",
                                         "y = x + f(norm(x)); y - silu(g)*sg(y)",
                                         "attn(x, qk = \"rmsnorm\", heads = 4)", "(2*N)^(1/4)", "(8*N)^(-1/4)", "-x^2",
                                         "(-x)^2", "2^-x^2", "a - (b - c)", "a - b - c", "a/(b*c)", "a/b*c",
                                         "not (a and b) or c", "not a == b", "clamp((t - 2000)/4000, 0, 1)", "1e-05*x",
                                         "if a then b else if c then d else e", "(if a then b else c) + d", "f()"));

TEST(Formula, FreeSpellingMeansTheSame) {
  EXPECT_EQ(print_formula(parse_formula("  norm( ((x))+f( x ) ) ;")), "norm(x + f(x))");
  EXPECT_EQ(print_formula(parse_formula("((2*N))^((1/4))")), "(2*N)^(1/4)");
  EXPECT_EQ(print_formula(parse_formula("a\n+ b")), "a + b");
}

TEST(Formula, PrecedenceAndAssociativity) {
  const auto same = [](const char* a, const char* b) {
    return same_expression(*parse_expression(a), *parse_expression(b));
  };
  EXPECT_TRUE(same("a - b - c", "(a - b) - c"));
  EXPECT_FALSE(same("a - b - c", "a - (b - c)"));
  EXPECT_TRUE(same("2^3^4", "2^(3^4)"));
  EXPECT_TRUE(same("-x^2", "-(x^2)"));
  EXPECT_TRUE(same("a + b*c^d", "a + (b*(c^d))"));
  EXPECT_TRUE(same("a < b + c and d", "(a < (b + c)) and d"));
}

TEST(Formula, ErrorsPointAtThePlace) {
  EXPECT_EQ(error_of([] { parse_formula("x + f(norm(x)"); }),
            "expected , or ) after an argument but found the end of the formula\n"
            "  x + f(norm(x)\n"
            "               ^");
  EXPECT_EQ(error_of([] { parse_formula("x + * f(x)"); }),
            "expected a value but found '*'\n"
            "  x + * f(x)\n"
            "      ^");
  EXPECT_EQ(error_of([] { parse_formula("x ? y"); }),
            "'?' is not part of the language\n"
            "  x ? y\n"
            "    ^");
  EXPECT_EQ(error_of([] { parse_formula("x + \u03b1*f(x) + \u03b2"); }),
            "letters other than a to z are not part of the language; a constant is a number, as in x + 0.5*f(x), or "
            "has a name under [constants] in a scheme file\n"
            "  x + \u03b1*f(x) + \u03b2\n"
            "      ^");
  EXPECT_EQ(error_of([] { parse_formula("2*x \u2212 f(x)"); }),
            "'\u2212' is not part of the language; write -\n"
            "  2*x \u2212 f(x)\n"
            "      ^");
  EXPECT_EQ(error_of([] { parse_formula("2\u00b7x"); }),
            "'\u00b7' is not part of the language; write *\n"
            "  2\u00b7x\n"
            "   ^");
  EXPECT_EQ(error_of([] { parse_formula("2x + f(x)"); }),
            "a number is followed by a letter; write a product as 2*x\n"
            "  2x + f(x)\n"
            "   ^");
  EXPECT_EQ(error_of([] { parse_formula("if l < 3 then x"); }),
            "expected else after the value of then but found the end of the formula\n"
            "  if l < 3 then x\n"
            "                 ^");
  EXPECT_EQ(error_of([] { parse_formula("x + f(x); norm(x)"); }),
            "only the last statement may be a value without a name; write name = ... here\n"
            "  x + f(x); norm(x)\n"
            "  ^^^^^^^^");
  EXPECT_EQ(error_of([] { parse_formula("attn(x, qk = 1, qk = 2)"); }),
            "the argument 'qk' is given twice\n"
            "  attn(x, qk = 1, qk = 2)\n"
            "                  ^^");
}

TEST(Formula, OneLineOfManyIsShown) {
  EXPECT_EQ(error_of([] { parse_formula("y = f(x);\nx + )"); }),
            "expected a value but found ')'\n"
            "  x + )\n"
            "      ^");
}

TEST(Formula, OfALongLineThePlaceIsShown) {
  std::string sum;
  for (int i = 0; i < 60; ++i) sum += "2*x + ";
  EXPECT_EQ(
      error_of([&] { parse_formula(sum + "* + " + sum + "x"); }),
      "expected a value but found '*'\n"
      "  ... x + 2*x + 2*x + 2*x + 2*x + 2*x + 2*x + * + 2*x + 2*x + 2*x + 2*x + 2*x + 2*x + 2*x + 2*x + 2*x + 2* ...\n"
      "                                              ^");
  const std::string end = error_of([&] { parse_formula(sum); });
  EXPECT_LT(end.size(), 300U) << end;
  EXPECT_TRUE(end.ends_with(" ^")) << end;
  for (std::size_t shift = 0; shift < 4; ++shift) {
    const std::string cut = error_of([&] { parse_formula("'" + std::string(shift, 'x') + std::string(500, '\xce')); });
    EXPECT_LT(cut.size(), 1000U) << cut;
  }
}

TEST(Formula, HostileInputIsRefusedNotFollowed) {
  for (const std::string& text :
       {std::string(100000, '('), std::string(5000, '('), std::string(5000, '-') + "x", std::string(""),
        std::string("\0x", 2), std::string("\xff\xfe"), std::string("1e999"), std::string("\"open")}) {
    EXPECT_NE(error_of([&] { parse_formula(text); }), "") << text.size();
  }
  std::string chain = "x", powers = "x", conditions = "x", words = "x";
  for (int i = 0; i < 5000; ++i) {
    chain += "+x";
    powers += "^x";
    conditions = "if x then x else " + conditions;
    words = "not " + words;
  }
  for (const std::string& text : {chain, powers, conditions, words})
    EXPECT_NE(error_of([&] { parse_formula(text); }), "");
}

}  // namespace
}  // namespace norma
