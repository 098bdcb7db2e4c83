// Files as people have them: packed, in UTF-16, as tables of commas or JSON; and what a run keeps of its vocabulary.
#include <gtest/gtest.h>

#include <cstdlib>

#include "files.h"
#include "norma/data/source.h"
#include "norma/data/tokenizer.h"
#include "norma/data/vocabulary.h"

namespace norma {
namespace {

std::string utf16(const std::string& ascii, bool little, bool mark) {
  std::string bytes = mark ? (little ? "\xFF\xFE" : "\xFE\xFF") : "";
  for (const char c : ascii) {
    if (!little) bytes += '\0';
    bytes += c;
    if (little) bytes += '\0';
  }
  return bytes;
}

std::string gzipped(const std::string& path) {
  EXPECT_EQ(std::system(("gzip --keep '" + path + "'").c_str()), 0);
  return path + ".gz";
}

// What the first evaluation row of a text says.
std::string first_row(const std::string& path) {
  const auto source = open_source({.task = "text", .path = path, .tokenizer = "bytes"}, {1, 32, 0});
  Batch batch;
  source->fill_evaluation(0, batch);
  return source->decode(batch.ids("tokens"));
}

TEST(Formats, PackedAndWideTextsAreReadAsWhatTheyAre) {
  const TemporaryFolder folder;
  const std::string text = nursery_text(), plain = folder.write("plain.txt", text);
  const std::string wanted = first_row(plain);
  ASSERT_EQ(wanted.size(), 32U);
  EXPECT_EQ(first_row(gzipped(plain)), wanted);
  for (const bool little : {true, false}) {
    for (const bool mark : {true, false}) {
      SCOPED_TRACE(std::to_string(little) + std::to_string(mark));
      const std::string wide =
          folder.write("wide" + std::to_string(little) + std::to_string(mark), utf16(text, little, mark));
      EXPECT_EQ(first_row(wide), wanted);
      EXPECT_EQ(first_row(gzipped(wide)), wanted);
    }
  }
}

TEST(Formats, WideTextBeyondTheFirstPlaneSurvives) {
  const TemporaryFolder folder;
  std::string bytes = "\xFF\xFE";
  for (int i = 0; i < 200; ++i) bytes += std::string("\x3D\xD8\x00\xDE\xE4\x00\n\x00", 8);  // U+1F600, U+00E4
  const auto source =
      open_source({.task = "text", .path = folder.write("wide", bytes), .tokenizer = "characters"}, {1, 8, 0});
  EXPECT_EQ(source->vocabulary(), 4);
  const std::string broken = folder.write("broken", "\xFF\xFE" + std::string("\x3D\xD8\x3D\xD8", 4));
  EXPECT_NE(error_of([&] { first_row(broken); }).find("byte 2 begins no character"), std::string::npos);
}

TEST(Formats, OtherFilesAreNamed) {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& bytes) {
    const std::string path = folder.write("file", bytes);
    return error_of([&] { first_row(path); });
  };
  EXPECT_NE(error("PK\x03\x04 ...").find("a zip archive"), std::string::npos);
  EXPECT_NE(error("PAR1....").find("Parquet"), std::string::npos);
  EXPECT_NE(error("\x28\xB5\x2F\xFD....").find("zstd"), std::string::npos);
  EXPECT_NE(error(std::string("ab\0\0cd", 6)).find("is NUL"), std::string::npos);
  const std::string packed = gzipped(folder.write("whole", nursery_text()));
  const std::string bytes = read_file(packed);
  EXPECT_NE(error(bytes.substr(0, bytes.size() / 2)).find("in the middle of its gzip data"), std::string::npos);
  std::string damaged = bytes;
  for (std::size_t i = 40; i < 60; ++i) damaged[i] = static_cast<char>(damaged[i] ^ 0x5A);
  EXPECT_NE(error(damaged).find("damaged"), std::string::npos);
}

struct Classified {
  std::vector<std::string> labels, texts;
};

// Labels and texts of the held-out records, which are all of them.
Classified classified(const std::string& path, DataConfig config = {}) {
  config.task = "classification";
  config.path = config.validation_path = path;
  config.tokenizer = "words";
  config.evaluation_batches = 0;
  const auto source = open_source(config, {4, 16, 0});
  Classified all;
  Batch batch;
  for (std::int64_t index = 0; index < source->evaluation_batches(); ++index) {
    source->fill_evaluation(index, batch);
    for (std::size_t row = 0; row < 4; ++row) {
      const std::int32_t label = batch.ids("targets")[row];
      if (label == kIgnored) continue;
      const auto begin = batch.ids("tokens").begin() + static_cast<std::ptrdiff_t>(16 * row);
      all.labels.push_back(source->labels()[static_cast<std::size_t>(label)]);
      all.texts.push_back(source->decode(std::vector<std::int32_t>(begin, begin + batch.ids("lengths")[row])));
    }
  }
  return all;
}

TEST(Formats, TablesOfCommasHaveQuotesAndHeaders) {
  const TemporaryFolder folder;
  const Classified named = classified(folder.write(
      "a.csv", "id,Text,Label\r\n1,\"well, \"\"this\"\"\nis good\",pos\r\n2,bad,neg\r\n3,  worse , neg\r\n"));
  EXPECT_EQ(named.labels, (std::vector<std::string>{"pos", "neg", "neg"}));
  EXPECT_EQ(named.texts[0], "well, \"this\"\nis good");
  EXPECT_EQ(named.texts[2], "worse");
  const Classified news =
      classified(folder.write("news.csv", "\"3\",\"Title\",\"Some text\"\n\"1\",\"Other\",\"More\"\n"));
  EXPECT_EQ(news.labels, (std::vector<std::string>{"3", "1"}));
  EXPECT_EQ(news.texts[0], "Title\tSome text");
  EXPECT_EQ(classified(folder.write("semicolon.csv", "text;label\na, b;x\nc;y\n")).texts[0], "a, b");
  EXPECT_EQ(classified(folder.write("table.txt", "text,label\na,x\nc,y\n"), {.layout = "csv"}).labels[1], "y");
  EXPECT_NE(
      error_of([&] { classified(folder.write("open.csv", "text,label\n\"a,x\n")); }).find("line 2: a quotation mark"),
      std::string::npos);
}

TEST(Formats, LinesOfJsonAreTables) {
  const TemporaryFolder folder;
  const std::string lines =
      "{\"label\": 1, \"text\": \"one \\u00e4\"}\n\n{\"text\": \"two\", \"label\": 0}\n{\"label\": 1, \"text\": "
      "\"three\"}\n";
  const Classified json = classified(folder.write("a.jsonl", lines));
  EXPECT_EQ(json.labels, (std::vector<std::string>{"1", "0", "1"}));
  EXPECT_EQ(json.texts, (std::vector<std::string>{"one \xC3\xA4", "two", "three"}));
  EXPECT_EQ(classified(folder.write("a.txt", lines)).labels, json.labels) << "whatever it is called";
  EXPECT_NE(error_of([&] {
              classified(folder.write("bad.jsonl", "{\"text\": 1}\n[]\n"));
            }).find("line 2 is not a JSON object"),
            std::string::npos);
}

TEST(Formats, ALanguageModelReadsTheTextsOfATable) {
  const TemporaryFolder folder;
  std::string json, csv = "id,text\n", plain;
  for (int i = 0; i < 100; ++i) {
    json += "{\"id\": " + std::to_string(i) + ", \"text\": \"line " + std::to_string(i) + "\"}\n";
    csv += std::to_string(i) + ",line " + std::to_string(i) + "\n";
    plain += "line " + std::to_string(i) + "\n";
  }
  const std::string wanted = first_row(folder.write("plain.txt", plain));
  EXPECT_EQ(first_row(folder.write("a.jsonl", json)), wanted);
  EXPECT_EQ(first_row(gzipped(folder.write("b.csv", csv))), wanted);
  const std::string path = folder.write("c.csv", "1,2\n3,4\n");
  EXPECT_NE(error_of([&] { first_row(path); }).find("data.text_column"), std::string::npos);
}

TEST(Formats, LabelledTablesShowThemselves) {
  const TemporaryFolder folder;
  std::string tsv = "sentence\tlabel\n", first, prose;
  for (int i = 0; i < 60; ++i) {
    tsv += "some words about number " + std::to_string(i) + "\t" + std::to_string(i % 3) + "\n";
    first += (i % 2 == 0 ? "__label__good a film to see again\n" : "__label__bad a film to leave early\n");
    prose += "It was the " + std::to_string(i) + "th day, and nothing had been heard of them.\nShe waited " +
             std::to_string(i) + " hours.\n";
  }
  const auto labelled = [&](const std::string& text) { return looks_labelled({.path = folder.write("file", text)}); };
  EXPECT_TRUE(labelled(tsv));
  EXPECT_TRUE(labelled(first));
  EXPECT_FALSE(labelled(nursery_text() + prose));
  std::string sentences;
  const char* const words[] = {"I", "You", "He", "She", "We", "They", "Tom", "Mary"};
  for (int i = 0; i < 400; ++i) sentences += std::string(words[i % 8]) + " went home at " + std::to_string(i) + ".\n";
  EXPECT_FALSE(labelled(sentences)) << "sentences that begin alike are no labels";
  std::string sorted;
  for (int i = 0; i < 8000; ++i) sorted += std::to_string(i / 4000) + " a film to see again or to leave early\n";
  EXPECT_TRUE(labelled(sorted)) << "the second label comes late";
  EXPECT_FALSE(labelled(sorted.substr(0, sorted.size() / 2))) << "one label tells nothing apart";
  EXPECT_FALSE(looks_labelled({.path = folder / "missing"}));
  const std::string table = folder.write("small.csv", "text,label\nso it goes,a\nand so on,b\n");
  EXPECT_TRUE(looks_labelled({.path = table})) << "titles say so, however few the rows";
  EXPECT_FALSE(looks_labelled({.path = table, .header = "no"}));
  const std::string ragged = folder.write("ragged.csv", "text,label\nso it goes,a\nand so on\n");
  EXPECT_TRUE(looks_labelled({.path = ragged})) << "a row that lacks its label is for the reader of labels to name";
  if (const std::string real = shared_data("tinyshakespeare/input.txt"); !real.empty()) {
    EXPECT_FALSE(looks_labelled({.path = real}));
  }
}

DataConfig of_tokenizer(const TemporaryFolder& folder, const std::string& tokenizer) {
  return {.task = "text",
          .path = folder.write("text", nursery_text()),
          .tokenizer = tokenizer,
          .vocabulary = tokenizer == "sentencepiece" ? 60 : 0};
}

TEST(Vocabulary, ARunKeepsWhatItsTokenizerKnows) {
  const TemporaryFolder folder;
  for (const char* tokenizer : {"bytes", "characters", "words", "sentencepiece"}) {
    SCOPED_TRACE(tokenizer);
    const DataConfig config = of_tokenizer(folder, tokenizer);
    const auto source = open_source(config, {2, 16, 0});
    const auto kept = parse_vocabulary(print_vocabulary(config, *source), "vocabulary.json");
    EXPECT_EQ(kept->vocabulary(), source->vocabulary());
    EXPECT_EQ(kept->first_token(), source->first_token());
    const std::vector<std::int32_t> tokens = source->tokenizer()->encode("the cat saw 7 mice\n");
    EXPECT_EQ(kept->tokenizer()->encode("the cat saw 7 mice\n"), tokens);
    EXPECT_EQ(kept->decode(tokens), source->decode(tokens));
  }
  EXPECT_EQ(print_vocabulary({.task = "grammar"}, *open_source({.task = "grammar"}, {2, 16, 0})), "");
  EXPECT_NE(error_of([] { parse_vocabulary("{}", "here"); }).find("'here' is damaged"), std::string::npos);
}

TEST(Vocabulary, OfWordsThatAreNotUtf8) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 50; ++i) text += "caf\xE9 noir\n";
  const DataConfig config{.task = "text", .path = folder.write("latin1", text), .tokenizer = "words"};
  const auto source = open_source(config, {2, 8, 0});
  const auto kept = parse_vocabulary(print_vocabulary(config, *source), "vocabulary.json");
  EXPECT_EQ(kept->tokenizer()->encode("caf\xE9"), source->tokenizer()->encode("caf\xE9"));
}

TEST(Vocabulary, OfGpt2) {
  const std::string folder = shared_data("gpt2-bpe");
  if (folder.empty() || shared_data("gpt2-bpe/vocab.json").empty()) GTEST_SKIP() << "the vocabulary is not here";
  const TokenizerPointer tokenizer = gpt2_tokenizer(folder);
  const TokenizerPointer again = restore_tokenizer(tokenizer->kind(), tokenizer->stored());
  EXPECT_EQ(again->encode("What's past is prologue.\n"), tokenizer->encode("What's past is prologue.\n"));
}

TEST(Vocabulary, OfClassesAndPairs) {
  const TemporaryFolder folder;
  DataConfig config{
      .task = "classification", .path = folder.write("t.tsv", "a b\tpos\nc\tneg\na c\tpos\n"), .tokenizer = "words"};
  config.validation_path = config.path;
  const auto source = open_source(config, {2, 8, 0});
  const auto kept = parse_vocabulary(print_vocabulary(config, *source), "vocabulary.json");
  EXPECT_EQ(kept->labels(), (std::vector<std::string>{"neg", "pos"}));
  EXPECT_EQ(kept->classes(), 2);
  EXPECT_EQ(kept->special().separator, source->special().separator);
  EXPECT_EQ(kept->vocabulary(), source->vocabulary());
}

TEST(SentencePiece, TrainsOnATextOfOneLine) {
  std::string text;
  while (text.size() < 60000) text += "the cat sat on the mat and saw some mice where did the mice go ";
  EXPECT_GT(sentencepiece_tokenizer(train_sentencepiece(text, 40, "unigram"))->vocabulary(), 20);
}

TEST(SentencePiece, SaysWhyItCannotTrain) {
  EXPECT_NE(error_of([] { train_sentencepiece(" \n\n", 40, "bpe"); }).find("is empty"), std::string::npos);
  EXPECT_NE(error_of([] { train_sentencepiece("caf\xE9\n", 40, "bpe"); }).find("not UTF-8, byte 3 is 0xe9"),
            std::string::npos);
  const std::string few = error_of([] { train_sentencepiece("abc abd\nabe\n", 1000, "bpe"); });
  EXPECT_NE(few.find("too high"), std::string::npos) << few;
  const std::string many = error_of([] { train_sentencepiece(nursery_text(), 5, "unigram"); });
  EXPECT_NE(many.find("smaller than"), std::string::npos) << many;
}

}  // namespace
}  // namespace norma
