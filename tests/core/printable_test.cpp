#include "norma/core/printable.h"

#include <gtest/gtest.h>

namespace norma {
namespace {

TEST(Printable, LeavesTextAsItIs) {
  for (const char* text : {"", "x + f(norm(x))\n\t^", "Größe ⊕ 层 𝛼", "\u200b\ufffd"}) {
    EXPECT_EQ(printable(text), text);
    EXPECT_EQ(printable_json(text), text);
  }
}

TEST(Printable, SpellsOutWhatATerminalWouldObey) {
  EXPECT_EQ(printable("\x1b[31mred\x1b[0m"), "\\x1b[31mred\\x1b[0m");
  EXPECT_EQ(printable("over\rwritten\x07\x7f"), "over\\x0dwritten\\x07\\x7f");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\u009b31m")
      << "one character that begins a sequence, too";
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "txt"),
            "\\u202etxt");
  EXPECT_EQ(printable_json("\"\xc2\x9b\x7f\""), "\"\\u009b\\u007f\"");
}

TEST(Printable, SpellsOutBytesThatAreNoText) {
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "\\x9b31m");
  EXPECT_EQ(printable("\xc3"), "\\xc3") << "cut off";
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b") << "longer than it needs to be";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half of a pair";
  EXPECT_EQ(printable("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80");
  EXPECT_EQ(printable_json("\xc3"), "\\ufffd");
}

}  // namespace
}  // namespace norma
