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
  EXPECT_NE(error_of([] { check_toml_text("a = 1\n\nb = \xc3\xa9", "run.toml"); }).find("run.toml, line 3"),
            std::string::npos);
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

}  // namespace
}  // namespace norma
