#include "norma/core/toml_text.h"

#include <gtest/gtest.h>

#include "error_of.h"

namespace norma {
namespace {

using test::error_of;

TEST(TomlText, MayHoldAnyLetterInStringsAndComments) {
  for (const char* text : {"", "a = 1",
                           "\xef\xbb\xbf"
                           "a = 1",
                           "a = \"\xcf\xa0\"", "a = '\xcf\xa0' # \xcf\xa0", "a = \"\\\"\xcf\xa0\"",
                           "a = \"\"\"\n\xcf\xa0\"\n\"\"\"", "a = '''\n'\xcf\xa0'''\nb = ''"})
    EXPECT_EQ(error_of([&] { check_toml_text(text, "here"); }), "") << text;
}

TEST(TomlText, MayNotHoldThemElsewhere) {
  for (const char* text : {"\xcf\xa0", "a = 1 \xcf\xa0", "a = \"b\" \xcf\xa0", "a = \"unterminated\n\xcf\xa0",
                           "a = '\\' \xcf\xa0'", "a = \"\"\"x\"\"\" \xcf\xa0", "# x\n\xcf\xa0"}) {
    const std::string error = error_of([&] { check_toml_text(text, "here"); });
    EXPECT_NE(error.find("here, line"), std::string::npos) << text;
  }
  EXPECT_TRUE(error_of([] {
                check_toml_text("a = 1\n\nb = \xc3\xa9", "run.toml");
              }).starts_with("run.toml, line 3, column 5: there is a letter beyond ASCII"));
}

TEST(TomlText, NamesItsTables) {
  for (const char* text : {"[a]", "  [a.b]\n[[c]]", "['a=b']", "[ \"x\" ]", "a = [\n  [+1, .2],\n  [{b = 1}]\n]\n[t]",
                           "a = [ # [=\n1]\n[-t_1]", "a = {b = [1]}\n[[ c ]]", "[]", "[[", "[", "a = '''\n[=\n'''"})
    EXPECT_EQ(error_of([&] { check_toml_text(text, "here"); }), "") << text;
  for (const char* text : {"[=]", "a = 1\n[.b]", "[\n", "[[=", "\t[ {", "a = [1]\n[+1]", "a = ']'\n[*]"}) {
    const std::string error = error_of([&] { check_toml_text(text, "here"); });
    EXPECT_NE(error.find("a table needs a name"), std::string::npos) << text;
  }
}

TEST(TomlText, HoldsNothingThatTheParserStumblesOver) {
  for (const char* text : {"a = 8\"x\"", "a = 8\"", "a = 1'x'", "a = \"x\"\"y\"", "a = 8&T:", "a = [}", "a = {]",
                           "a = [1}", "a = ]", "a = {b = [}}", "a = 1;", "a = x(1)", "a = 1 | 2", "a = \x01"}) {
    const std::string error = error_of([&] { check_toml_text(text, "here"); });
    EXPECT_NE(error.find("here, line 1, column "), std::string::npos) << text;
  }
  for (const char* text :
       {"a = [\"x\", 'y']", "a.\"b c\".'d' = {\"e\" = 1}", "a = \"\"\"x\"\"\"\"\"", "a = '''x'''''\nb = 1",
        "d = 1979-05-27T07:32:00+01:00", "a = -1.5e-3", "a = [ [1, 2], [{b = 1}] ]", "\"a\"=\"b\""})
    EXPECT_EQ(error_of([&] { check_toml_text(text, "here"); }), "") << text;
}

// toml++ reads the first two as a date and time and as a number whose length it does not look at.
TEST(TomlText, HoldsValuesAsTomlWritesThem) {
  for (const char* text : {"t =1979-05-27T+07:32:00+01:[[[[00layer = \"rclu(f(x))\"",
                           "a = 1[2]",
                           "a = 1979-05-27T",
                           "a = 12:00",
                           "a = 1__0",
                           "a = 0xG",
                           "a = 1e",
                           "a = 1.",
                           "a = +-1",
                           "a = yes",
                           "a = True",
                           "a = 1 2",
                           "a = 1979-05-27  07:32:00",
                           "a = x+f",
                           "a = [1 2]",
                           "a = [1, b = 2]",
                           "a = {b = 1 c = 2}",
                           "a = 1, 2",
                           "a = 1 = 2",
                           "a = = 1",
                           "a+b = 1",
                           "a:b = 1",
                           "a = {1 = {2}=}",
                           "a[1] = 2",
                           "a = 07:32:00Z",
                           "a = 0b12"}) {
    const std::string error = error_of([&] { check_toml_text(text, "here"); });
    EXPECT_NE(error.find("here, line 1, column "), std::string::npos) << text;
  }
  for (const char* text :
       {"a = +1_000", "a = -0", "a = 0xdead_BEEF", "a = 0o17", "a = 0b1_0", "a = 6.02e23", "a = 1E-3", "a = .5",
        "a = -inf", "a = nan", "a = 1979-05-27 07:32:00.5-01:00 # x", "a = 1979-05-27", "a = 07:32:00.25",
        "a = 1979-05-27t07:32:00z", "a = [1979-05-27, 07:32:00, 1.5, ]", "1 = 2\n-3 = 4",
        "a = {b.c = 1, d = [true, false]}\ne = 'x'", "a = [\n  1, # one\n  2\n]\r\nb = 3"})
    EXPECT_EQ(error_of([&] { check_toml_text(text, "here"); }), "") << text;
}

std::string times(std::size_t count, const std::string& text) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

TEST(TomlText, IsNotNestedWithoutEnd) {
  for (const std::string& text :
       {"a" + times(40000, ".a") + " = 1", "[a" + times(200000, ".a") + "]", "[[a" + times(200000, ".\"a\"") + "]]",
        "a = " + times(200000, "["), "a = " + times(200000, "{a = "), "a = {" + times(100, "b.") + "b = 1}"}) {
    const std::string error = error_of([&] { check_toml_text(text, "here"); });
    EXPECT_NE(error.find("here, line 1, column "), std::string::npos) << text.substr(0, 20);
  }
  EXPECT_EQ(error_of([] { check_toml_text(times(1000, "a.b.c = 1.5\nx = [1.5, 2.5]\n"), "here"); }), "");
}

}  // namespace
}  // namespace norma
