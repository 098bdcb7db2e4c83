// Tokenizers: known encodings, round trips, and files that are none.
#include "norma/data/tokenizer.h"

#include <gtest/gtest.h>

#include <iterator>
#include <random>
#include <sstream>

#include "data/byte_pairs.h"
#include "data/pretokenize.h"
#include "data/unicode.h"
#include "data/utf8.h"
#include "files.h"

namespace norma {
namespace {

using Tokens = std::vector<std::int32_t>;
using Strings = std::vector<std::string>;

TEST(Utf8, AcceptsOnlyShortestForms) {
  const auto bytes = [](std::string_view text) { return read_code_point(text, 0).bytes; };
  EXPECT_EQ(bytes("a"), 1);
  EXPECT_EQ(bytes("\xC3\xA4"), 2);
  EXPECT_EQ(bytes("\xE2\x82\xAC"), 3);
  EXPECT_EQ(bytes("\xF0\x9F\xA6\x99"), 4);
  for (const std::string_view bad :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80", "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80", "\xFF", "\xC3", "\xE2\x82", "\xF0\x9F\xA6", "\xC3\x41", "\xE2\x82\x41"}) {
    EXPECT_EQ(bytes(bad), 0);
  }
  for (const char32_t c : {U'\0', U'\x7F', U'\x80', U'\x7FF', U'\x800', U'\xFFFF', U'\x10000', U'\x10FFFF'}) {
    std::string text;
    append_utf8(c, text);
    EXPECT_EQ(read_code_point(text, 0).value, c);
    EXPECT_EQ(bytes(text), static_cast<int>(text.size()));
  }
}

TEST(Unicode, KnowsLettersNumbersAndSpaces) {
  for (const char32_t c : {U'a', U'Z', U'ß', U'é', U'Ж', U'ש', U'中', U'ん', U'\u02B0', U'\U00020000'}) {
    EXPECT_TRUE(is_letter(c) && !is_number(c) && !is_space(c)) << static_cast<unsigned>(c);
  }
  for (const char32_t c : {U'0', U'9', U'²', U'½', U'Ⅷ', U'٣', U'\u3007'}) {
    EXPECT_TRUE(is_number(c) && !is_letter(c) && !is_space(c)) << static_cast<unsigned>(c);
  }
  for (const char32_t c : {U' ', U'\t', U'\n', U'\r', U'\u0085', U'\u00A0', U'\u2003', U'\u3000'}) {
    EXPECT_TRUE(is_space(c) && !is_letter(c) && !is_number(c)) << static_cast<unsigned>(c);
  }
  for (const char32_t c :
       {U'_', U'-', U'\'', U'`', U'{', U'@', U'[', U'/', U':', U'€', U'\u0301', U'\u200B', U'\x1F'}) {
    EXPECT_FALSE(is_letter(c) || is_number(c) || is_space(c)) << static_cast<unsigned>(c);
  }
}

std::vector<std::string> pieces(std::string_view text) {
  std::vector<std::string> found;
  for (std::size_t begin = 0, end; begin < text.size(); begin = end) {
    end = end_of_piece(text, begin);
    found.emplace_back(text.substr(begin, end - begin));
  }
  return found;
}

TEST(Pretokenize, CutsAsTheExpressionDoes) {
  EXPECT_EQ(pieces("Hello world"), (Strings{"Hello", " world"}));
  EXPECT_EQ(pieces("I'm we'll they'd 'twas it's"),
            (Strings{"I", "'m", " we", "'ll", " they", "'d", " '", "twas", " it", "'s"}));
  EXPECT_EQ(pieces("I'VE"), (Strings{"I", "'", "VE"}));
  EXPECT_EQ(pieces("a1b22 33c"), (Strings{"a", "1", "b", "22", " 33", "c"}));
  EXPECT_EQ(pieces("a  b   c"), (Strings{"a", " ", " b", "  ", " c"}));
  EXPECT_EQ(pieces("a \n b"), (Strings{"a", " \n", " b"}));
  EXPECT_EQ(pieces("a\n\nb"), (Strings{"a", "\n", "\n", "b"}));
  EXPECT_EQ(pieces("a\n"), (Strings{"a", "\n"}));
  EXPECT_EQ(pieces("end  \n "), (Strings{"end", "  \n "}));
  EXPECT_EQ(pieces("\tb"), (Strings{"\t", "b"}));
  EXPECT_EQ(pieces("x \t!"), (Strings{"x", " ", "\t", "!"}));
  EXPECT_EQ(pieces("wow!!! ...''"), (Strings{"wow", "!!!", " ...''"}));
  EXPECT_EQ(pieces("'"), (Strings{"'"}));
  EXPECT_EQ(pieces(" "), (Strings{" "}));
  EXPECT_EQ(pieces("Führer ½ 中文"), (Strings{"Führer", " ½", " 中文"}));
  EXPECT_EQ(pieces("\xFF\xFE a"), (Strings{"\xFF\xFE", " a"}));
}

// All bytes under their own number, then "ab" = 256 and so on.
BytePairs small_pairs() {
  BytePairs pairs;
  for (int byte = 0; byte < 256; ++byte) pairs.set_byte(static_cast<unsigned char>(byte), byte);
  pairs.add_merge('a', 'b', {0, 256});
  pairs.add_merge('b', 'c', {1, 257});
  pairs.add_merge('a', 'a', {2, 258});
  pairs.add_merge(258, 258, {3, 259});
  pairs.add_merge(256, 'c', {4, 260});
  return pairs;
}

TEST(BytePairs, MergesLowestRankFirstAndLeftmost) {
  const auto encode = [](std::string_view piece) {
    Tokens tokens;
    small_pairs().encode(piece, tokens);
    return tokens;
  };
  EXPECT_EQ(encode(""), Tokens{});
  EXPECT_EQ(encode("z"), Tokens{'z'});
  EXPECT_EQ(encode("abc"), Tokens{260});  // ab before bc
  EXPECT_EQ(encode("bc"), Tokens{257});
  EXPECT_EQ(encode("aaa"), (Tokens{258, 'a'}));
  EXPECT_EQ(encode("aaaa"), Tokens{259});
  EXPECT_EQ(encode("aaaaa"), (Tokens{259, 'a'}));
  EXPECT_EQ(encode("aaaaaab"), (Tokens{259, 'a', 256}));  // ab first, then aa from the left
  EXPECT_EQ(encode("abab"), (Tokens{256, 256}));
}

TEST(BytePairs, AreQuickOnLongPieces) {
  Tokens tokens;
  small_pairs().encode(std::string(1 << 20, 'a'), tokens);
  EXPECT_EQ(tokens, Tokens(1 << 18, 259));
}

// A vocabulary in GPT-2's files: the 256 bytes in the order of their characters, two merges, one special token.
void write_small_gpt2(const TemporaryFolder& folder) {
  std::string json = "{", text;
  int id = 0;
  char32_t other = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    text.clear();
    append_utf8(printable ? static_cast<char32_t>(byte) : other++, text);
    json += (byte == '"' || byte == '\\') ? "\"\\" + text : "\"" + text;
    json += "\": " + std::to_string(id++) + ", ";
  }
  json += "\"he\": 256, \"\xC4\xA0he\": 257, \"<|end|>\": 258}";
  folder.write("vocab.json", json);
  folder.write("merges.txt", "#version: 0.2\nh e\n\xC4\xA0 he\n");
}

TEST(Gpt2, ReadsItsFilesAndKeepsEveryByte) {
  const TemporaryFolder folder;
  write_small_gpt2(folder);
  const TokenizerPointer tokenizer = gpt2_tokenizer(folder.path().string());
  EXPECT_EQ(tokenizer->vocabulary(), 259);
  EXPECT_EQ(tokenizer->encode("he he"), (Tokens{256, 257}));
  EXPECT_EQ(tokenizer->encode("<|end|>").size(), 7u) << "special tokens are not looked for";
  for (const std::string& text : {random_bytes(1000, 1), std::string(), std::string("\0\n\xFF", 3)}) {
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
  EXPECT_EQ(tokenizer->decode(Tokens{-1, 256, 999}), "\uFFFDhe\uFFFD");
}

TEST(Gpt2, RefusesOtherFiles) {
  const auto message = [](const std::string& vocabulary, const std::string& merges) {
    const TemporaryFolder folder;
    write_small_gpt2(folder);
    if (!vocabulary.empty()) folder.write("vocab.json", vocabulary);
    if (!merges.empty()) folder.write("merges.txt", merges);
    return error_of([&] { gpt2_tokenizer(folder.path().string()); });
  };
  EXPECT_EQ(message("", ""), "");
  EXPECT_NE(message("[1, 2]", "").find("is not a vocabulary"), std::string::npos);
  EXPECT_NE(message("{\"a\": 0, \"b\": 0}", "").find("each of 0 to 1 once"), std::string::npos);
  EXPECT_NE(message("{\"a\": 7}", "").find("id 7"), std::string::npos);
  EXPECT_NE(message("{\"a\": -1}", "").find("id -1"), std::string::npos);
  EXPECT_NE(message("{\"a\": \"x\"}", "").find("id \"x\""), std::string::npos);
  EXPECT_NE(message("{\"a\": 0}", "").find("no token for the single byte"), std::string::npos);
  EXPECT_NE(message("{\"中\": 0}", "").find("alphabet"), std::string::npos);
  EXPECT_NE(message("", "h e x\n").find("line 1"), std::string::npos);
  EXPECT_NE(message("", "h e\nhe\n").find("line 2"), std::string::npos);
  EXPECT_NE(message("", "x y\n").find("'xy' is not in the vocabulary"), std::string::npos);
  for (unsigned seed = 0; seed < 50; ++seed) {
    EXPECT_NE(message(random_bytes(200, seed), ""), "");
    EXPECT_NE(message("", random_bytes(200, seed)), "");
  }
  EXPECT_NE(message(std::string(100000, '['), "").find("is not a vocabulary"), std::string::npos);
  EXPECT_NE(error_of([] { gpt2_tokenizer(""); }).find("data.tokenizer_path"), std::string::npos);
  EXPECT_NE(error_of([] { gpt2_tokenizer("/nowhere"); }).find("cannot open"), std::string::npos);
}

TEST(Gpt2, RefusesAVocabularyThatIsNestedWithoutEnd) {
  const TemporaryFolder folder;
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "{\"a\":";
  folder.write("vocab.json", deep + "1" + std::string(100000, '}'));
  folder.write("merges.txt", "#version: 0.2\n");
  const std::string error = error_of([&] { gpt2_tokenizer(folder.path().string()); });
  EXPECT_NE(error.find("is not a vocabulary"), std::string::npos) << error.substr(0, 200);
}

TEST(Gpt2, GivesTheKnownEncodings) {
  const std::string folder = shared_data("gpt2-bpe");
  if (folder.empty()) GTEST_SKIP() << "no gpt2-bpe";
  const TokenizerPointer tokenizer = gpt2_tokenizer(folder);
  EXPECT_EQ(tokenizer->vocabulary(), 50257);
  EXPECT_EQ(tokenizer->encode("Hello world"), (Tokens{15496, 995}));
  EXPECT_EQ(tokenizer->encode("Hello, world!"), (Tokens{15496, 11, 995, 0}));
  EXPECT_EQ(tokenizer->encode("\n"), Tokens{198});
  EXPECT_EQ(tokenizer->decode(Tokens{50256}), "<|endoftext|>");

  const std::string inputs = read_file(folder + "/test_strings.inp"),
                    expected = read_file(folder + "/test_strings.out");
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::istringstream lines(expected);
  std::string line;
  int compared = 0;
  for (std::size_t at = 0; at < inputs.size() && std::getline(lines, line);) {
    const std::size_t end = std::min(inputs.find(separator, at), inputs.size());
    const std::string text = inputs.substr(at, end - at);
    at = end + separator.size();
    std::istringstream numbers(line);
    const Tokens tokens{std::istream_iterator<int>(numbers), {}};
    EXPECT_EQ(tokenizer->encode(text), tokens) << "'" << text << "'";
    ++compared;
  }
  EXPECT_GT(compared, 40);
}

TEST(Gpt2, RoundTripsRealText) {
  const std::string folder = shared_data("gpt2-bpe");
  if (folder.empty()) GTEST_SKIP() << "no gpt2-bpe";
  const TokenizerPointer tokenizer = gpt2_tokenizer(folder);
  for (const char* name : {"tinyshakespeare/input.txt", "glue/CoLA/train.tsv", "glue/STS-B/train.tsv",
                           "sentence-classification/TREC.train.all", "sentence-classification/stsa.fine.train"}) {
    const std::string text = read_file(shared_data(name));
    const Tokens tokens = tokenizer->encode(text);
    EXPECT_LT(tokens.size(), text.size() / 2);
    EXPECT_EQ(tokenizer->decode(tokens), text) << name;
  }
}

TEST(Characters, AreThoseOfTheTrainingText) {
  const TokenizerPointer tokenizer = character_tokenizer("bäa€\nb");
  EXPECT_EQ(tokenizer->vocabulary(), 6);
  EXPECT_EQ(tokenizer->encode("ab\n€"), (Tokens{2, 3, 1, 5}));
  EXPECT_EQ(tokenizer->encode("äz\xFF"), (Tokens{4, 0, 0}));
  EXPECT_EQ(tokenizer->decode(Tokens{4, 5, 0, 99, -5}), "ä€\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(character_tokenizer("aabbbc", 3)->encode("abc"), (Tokens{1, 2, 0}));
  EXPECT_NE(error_of([] { character_tokenizer("ab\xC3(", 0); }).find("byte 2 is 0xc3"), std::string::npos);
}

TEST(Words, AreRankedByFrequency) {
  const TokenizerPointer tokenizer = word_tokenizer("b a\tb <unk> c\n b  a d\r\n");
  EXPECT_EQ(tokenizer->vocabulary(), 6);
  EXPECT_EQ(tokenizer->encode("a b\nx <unk> c d"), (Tokens{3, 2, 1, 0, 0, 4, 5}));
  EXPECT_EQ(tokenizer->decode(Tokens{3, 2, 1, 0, 4, -9}), "a b\n<unk> c \uFFFD");
  EXPECT_EQ(word_tokenizer("b a b c", 3)->vocabulary(), 3);
  EXPECT_EQ(word_tokenizer("b a b c", 3)->encode("a b c"), (Tokens{0, 2, 0}));
  EXPECT_EQ(word_tokenizer("", 0)->vocabulary(), 2);
}

TEST(Tokenizer, IsChosenByName) {
  EXPECT_EQ(open_tokenizer({}, "x")->vocabulary(), 256);
  EXPECT_EQ(open_tokenizer({.tokenizer = "characters"}, "xyx")->vocabulary(), 3);
  EXPECT_EQ(open_tokenizer({.tokenizer = "words"}, "x y x")->vocabulary(), 4);
  EXPECT_LE(open_tokenizer({.tokenizer = "sentencepiece", .vocabulary = 81}, nursery_text())->vocabulary(), 81);
  EXPECT_NE(error_of([] { open_tokenizer({.tokenizer = "word"}, "x"); }).find("did you mean 'words'?"),
            std::string::npos);
  EXPECT_NE(error_of([] { open_tokenizer({.tokenizer = "sentencepiece"}, "x"); }).find("data.vocabulary"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              open_tokenizer({.vocabulary = 100}, "x");
            }).find("data.vocabulary is 100, but there are 256 tokens (bytes)"),
            std::string::npos);
  EXPECT_NE(error_of([] { open_tokenizer({.vocabulary = -3}, "x"); }).find("-3"), std::string::npos);
}

}  // namespace
}  // namespace norma
