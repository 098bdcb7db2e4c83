// BLEU against sacreBLEU's documented example and against values worked out by hand.
#include "norma/data/bleu.h"

#include <gtest/gtest.h>

#include <cmath>

#include "files.h"

namespace norma {
namespace {

using Strings = std::vector<std::string>;

TEST(Bleu, GivesTheDocumentedExample) {
  const Strings hypotheses = {"The dog bit the man.", "It wasn't surprising.", "The man had just bitten him."};
  const std::vector<Strings> references = {{"The dog bit the man.", "The dog had bit the man."},
                                           {"It was not unexpected.", "No one was surprised."},
                                           {"The man bit him first.", "The man had bitten the dog."}};
  EXPECT_EQ(corpus_bleu(hypotheses, references).describe(),
            "48.53 82.4/50.0/45.5/37.5 (BP = 0.943 ratio = 0.944 hyp_len = 17 ref_len = 18)");
}

TEST(Bleu, IsAHundredForEqualTexts) {
  const Strings text = {"A cat sat on the mat.", "Nothing else, really."};
  EXPECT_NEAR(corpus_bleu(text, text).score, 100, 1e-9);
}

// Hypothesis of 6 words, 1-grams 5/6, 2-grams 3/5, 3-grams 1/4; 4-grams 0/3, smoothed to (1/2)/3.
TEST(Bleu, SmoothsAnOrderWithoutMatches) {
  const Strings hypotheses = {"the cat sat on a mat"}, references = {"the cat sat in a mat"};
  // 1-grams: the cat sat a mat = 5; 2-grams: the-cat, cat-sat, a-mat = 3; 3-grams: the-cat-sat = 1.
  const Bleu bleu = corpus_bleu(hypotheses, references);
  EXPECT_NEAR(bleu.precisions[3], 100.0 / (2 * 3), 1e-9);
  EXPECT_NEAR(bleu.score, 100 * std::pow(5.0 / 6 * 3.0 / 5 * 1.0 / 4 * 1.0 / 6, 0.25), 1e-9);
}

TEST(Bleu, HalvesAgainForEachFurtherOrder) {
  // 1-grams 2/4; 2-, 3-, 4-grams 0/3, 0/2, 0/1: 1/2/3, 1/4/2, 1/8/1.
  const Strings hypotheses = {"a x b y"}, references = {"b z a w"};
  EXPECT_NEAR(corpus_bleu(hypotheses, references).score, 100 * std::pow(0.5 * (1.0 / 6) * (1.0 / 8) * (1.0 / 8), 0.25),
              1e-9);
}

TEST(Bleu, CountsARepeatedWordAsOftenAsTheReferenceHasIt) {
  const Strings hypotheses = {"the the the the"}, references = {"the cat the mat"};
  const Bleu bleu = corpus_bleu(hypotheses, references);
  EXPECT_NEAR(bleu.precisions[0], 50, 1e-9);
}

TEST(Bleu, PunishesShortTexts) {
  const Strings hypotheses = {"one two three four five"}, references = {"one two three four five six seven"};
  const Bleu bleu = corpus_bleu(hypotheses, references);
  EXPECT_NEAR(bleu.brevity_penalty, std::exp(1 - 7.0 / 5), 1e-12);
  EXPECT_NEAR(bleu.score, 100 * std::exp(1 - 7.0 / 5), 1e-9);
}

TEST(Bleu, IsNothingWithoutMatchesOrWithoutFourWords) {
  const Strings none = {"a b c d e"}, other = {"v w x y z"}, three = {"a b c"}, empty = {""};
  EXPECT_EQ(corpus_bleu(none, other).score, 0);
  EXPECT_EQ(corpus_bleu(three, three).score, 0);  // no 4-grams at all
  EXPECT_EQ(corpus_bleu(empty, none).score, 0);
  EXPECT_EQ(corpus_bleu(empty, empty).score, 0);
  EXPECT_EQ(corpus_bleu(Strings{}, Strings{}).score, 0);
}

TEST(Bleu, KeepsCase) {
  const Strings upper = {"The Cat Sat Down Here"}, lower = {"the cat sat down here"};
  EXPECT_EQ(corpus_bleu(upper, lower).score, 0);
}

TEST(Bleu, RefusesUnequalCounts) {
  const Strings one = {"a"}, two = {"a", "b"};
  EXPECT_NE(error_of([&] { corpus_bleu(one, two); }).find("1 hypotheses and 2 references"), std::string::npos);
  EXPECT_NE(error_of([&] { corpus_bleu(one, std::vector<Strings>{{}}); }).find("no reference"), std::string::npos);
}

TEST(Tokenize13a, PartsPunctuationButNotNumbers) {
  EXPECT_EQ(tokenize_13a("Hello, world!"), "Hello , world !");
  EXPECT_EQ(tokenize_13a("It costs 1,234.56 dollars."), "It costs 1,234.56 dollars .");
  EXPECT_EQ(tokenize_13a("in 1994."), "in 1994 .");
  EXPECT_EQ(tokenize_13a("a.b,c"), "a . b , c");
  EXPECT_EQ(tokenize_13a("1990-1995 well-known"), "1990 - 1995 well-known");
  EXPECT_EQ(tokenize_13a("don't (stop)"), "don't ( stop )");
  EXPECT_EQ(tokenize_13a("&quot;a&amp;b&quot; &lt;x&gt;"), "\" a & b \" < x >");
  EXPECT_EQ(tokenize_13a("<skipped>a-\nb\nc"), "ab c");
  EXPECT_EQ(tokenize_13a("wait..."), "wait . . .");
  EXPECT_EQ(tokenize_13a(".5 5."), ". 5 5 .");
  EXPECT_EQ(tokenize_13a("größer\u00A0als 3\u3000€"), "größer als 3 €");
  EXPECT_EQ(tokenize_13a(" \t "), "");
}

}  // namespace
}  // namespace norma
