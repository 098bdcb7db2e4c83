// Pairs of sentences, labelled sentences and masked text: what stands where in a batch, and which files are refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "files.h"
#include "norma/data/source.h"

namespace norma {
namespace {

using Tokens = std::vector<std::int32_t>;

Tokens row_of(const Tokens& all, std::int64_t row, std::int64_t width) {
  return {all.begin() + row * width, all.begin() + (row + 1) * width};
}

DataConfig translation(const std::string& path, const std::string& target = "") {
  return {.task = "translation",
          .path = path,
          .validation_path = path,
          .target_path = target,
          .validation_target_path = target,
          .tokenizer = "words"};
}

TEST(Translation, FramesAndPadsPairs) {
  const TemporaryFolder folder;
  const std::string x = folder.write("x", "a b c\na\n"), y = folder.write("y", "A B\nA\r\n");
  const auto source = open_source(translation(x, y), {2, 4, 5});
  // <unk> <eos> a A B b c: 7 words by frequency and text, then <pad> <bos> <eos>.
  ASSERT_EQ(source->vocabulary(), 10);
  const SpecialTokens special = source->special();
  EXPECT_EQ(special.padding, 7);
  EXPECT_EQ(special.beginning, 8);
  EXPECT_EQ(special.end, 9);
  Batch batch;
  source->fill_evaluation(0, batch);
  EXPECT_EQ(source->decode(row_of(batch.ids("source"), 0, 5)), "a b c");
  EXPECT_EQ(batch.ids("source")[3], special.end);
  EXPECT_EQ(batch.ids("source")[4], special.padding);
  EXPECT_EQ(batch.ids("tokens")[0], special.beginning);
  EXPECT_EQ(source->decode(row_of(batch.ids("tokens"), 0, 4)), "A B");
  EXPECT_EQ(batch.ids("tokens")[3], special.padding);
  EXPECT_EQ(row_of(batch.ids("targets"), 0, 4),
            (Tokens{batch.ids("tokens")[1], batch.ids("tokens")[2], special.end, kIgnored}));
  EXPECT_EQ(batch.ids("source_lengths"), (Tokens{4, 2}));
  EXPECT_EQ(batch.ids("lengths"), (Tokens{3, 2}));
  EXPECT_EQ(source->reference(0, 0), "A B");
  EXPECT_EQ(source->reference(0, 1), "A");
}

TEST(Translation, DropsWhatDoesNotFit) {
  const TemporaryFolder folder;
  const std::string path = folder.write("p", "a\tb\na a a a\tb\na\tb b b b\n\tb\na\t\na a a\tb b b\n");
  const auto source = open_source(translation(path), {4, 4, 4});
  EXPECT_NE(source->describe().find("2 training and 2 validation pairs, 8 dropped"), std::string::npos)
      << source->describe();
  Batch batch;
  source->fill_evaluation(0, batch);
  EXPECT_EQ(batch.ids("source_lengths"), (Tokens{2, 4, 1, 1}));
  EXPECT_EQ(row_of(batch.ids("targets"), 2, 4), Tokens(4, kIgnored)) << "no pair, nothing counted";
  EXPECT_EQ(source->reference(0, 3), "");
}

TEST(Translation, ShowsEveryPairOnceAnEpochAndHoldsOutWholeSentences) {
  const TemporaryFolder folder;
  std::string pairs;
  for (int i = 0; i < 300; ++i) pairs += fmt::format("x{}\ty{}\n", i / 3, i);  // three translations each
  DataConfig config = translation(folder.write("p", pairs));
  config.validation_path.clear();
  config.evaluation_batches = 0;
  const auto source = open_source(config, {3, 2, 2});
  Batch batch;
  std::map<std::string, int> seen;
  std::set<std::string> trained, evaluated;
  const std::string text = source->describe();
  const int training = std::stoi(text.substr(text.find("words: ") + 7));
  EXPECT_EQ(training % 3, 0);
  EXPECT_NEAR(training, 270, 40);
  for (std::uint64_t index = 0; index < static_cast<std::uint64_t>(training) / 3 * 2; ++index) {
    source->fill(index, 5, batch);
    for (std::int64_t row = 0; row < 3; ++row) {
      ++seen[source->decode(row_of(batch.ids("tokens"), row, 2))];
      trained.insert(source->decode(row_of(batch.ids("source"), row, 2)));
    }
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(training));
  for (const auto& [pair, count] : seen) EXPECT_EQ(count, 2) << pair;
  for (std::int64_t index = 0; index < source->evaluation_batches(); ++index) {
    for (std::int64_t row = 0; row < 3; ++row) {
      const std::string reference = source->reference(index, row);
      if (!reference.empty()) evaluated.insert("x" + std::to_string(std::stoi(reference.substr(1)) / 3));
    }
  }
  EXPECT_EQ(evaluated.size() + trained.size(), 100u);
  for (const std::string& sentence : evaluated) EXPECT_FALSE(trained.contains(sentence)) << sentence;
}

TEST(Translation, NamesWhatIsWrong) {
  const TemporaryFolder folder;
  const std::string two = folder.write("two", "a\nb\n"), three = folder.write("three", "a\nb\nc\n");
  const auto message = [](const DataConfig& config, const BatchShape& shape) {
    return error_of([&] { open_source(config, shape); });
  };
  EXPECT_NE(message(translation(two, three), {1, 8, 8}).find("has 2 lines and"), std::string::npos);
  EXPECT_NE(message(translation(two), {1, 8, 8}).find("line 1 has 1 columns"), std::string::npos);
  EXPECT_NE(message(translation(two, two), {1, 8, 0}).find("needs an encoder"), std::string::npos);
  EXPECT_NE(message(translation(two, two), {1, 1, 1}).find("none of 2 pairs"), std::string::npos);
  const std::string alike = folder.write("alike", "a\na\na\n");
  DataConfig together = translation(alike, alike);  // one source, which is on one side alone
  together.validation_path = together.validation_target_path = "";
  EXPECT_NE(message(together, {1, 8, 8}).find("where pairs of one source stay together"), std::string::npos);
  EXPECT_NE(message(translation(two, folder / "missing"), {1, 8, 8}).find("cannot open"), std::string::npos);
}

TEST(Translation, SaysHowLongRowsMustBeWhereMostPairsAreDropped) {
  const TemporaryFolder folder;
  std::string sentences;
  for (int i = 0; i < 100; ++i) sentences += i % 20 < 1 ? fmt::format("a{}\n", i) : fmt::format("{:020}\n", i);
  const std::string file = folder.write("long", sentences);
  DataConfig config = translation(file, file);
  config.tokenizer = "bytes";
  EXPECT_NE(error_of([&] {
              open_source(config, {1, 8, 8});
            }).find("model.time = 21 would keep 95 %"),
            std::string::npos);
  EXPECT_EQ(open_source(config, {1, 21, 21})->describe().find("would keep"), std::string::npos);
  std::string half;
  for (int i = 0; i < 100; ++i) half += i % 2 < 1 ? fmt::format("a{}\n", i) : fmt::format("{:020}\n", i);
  config.path = config.target_path = folder.write("mixed", half);
  config.validation_path = config.validation_target_path = config.path;
  EXPECT_NE(open_source(config, {1, 8, 8})->describe().find("(model.time = 21 would keep 95 %)"), std::string::npos);
}

TEST(Translation, ReadsRealPairsWithSentencePiece) {
  const std::string path = shared_data("glue/MRPC/dev.tsv");  // paraphrases stand for translations
  if (path.empty()) GTEST_SKIP() << "no MRPC";
  DataConfig config = translation(path);
  config.text_column = 3;
  config.second_text_column = 4;
  config.tokenizer = "sentencepiece";
  config.vocabulary = 1000;
  const auto source = open_source(config, {4, 80, 80});
  EXPECT_LE(source->vocabulary(), 1003);
  Batch batch;
  source->fill_evaluation(0, batch);
  for (std::int64_t row = 0; row < 4; ++row) {
    EXPECT_EQ(source->decode(row_of(batch.ids("tokens"), row, 80)), source->reference(0, row));
  }
}

DataConfig classification(const std::string& path) {
  return {.task = "classification", .path = path, .validation_path = path, .tokenizer = "words"};
}

// The first record of a file, as "label: text".
std::string first_record(const DataConfig& config) {
  const auto source = open_source(config, {1, 16, 0});
  Batch batch;
  source->fill_evaluation(0, batch);
  EXPECT_EQ(batch.ids("tokens")[0], source->special().beginning);
  return fmt::format("{} of {}: {}", batch.ids("targets")[0], source->classes(), source->decode(batch.ids("tokens")));
}

TEST(Classification, ReadsTheUsualLayouts) {
  const TemporaryFolder folder;
  EXPECT_EQ(first_record(classification(folder.write("trec", "1 what is it ?\n0 who ?\n"))), "1 of 2: what is it ?");
  EXPECT_EQ(first_record(classification(folder.write("cola", "gj\t1\t\tA b.\ngj\t0\t*\tC.\n"))), "1 of 2: A b.");
  EXPECT_EQ(first_record(classification(folder.write("sst", "sentence\tlabel\ngood one\t1\nbad\t0\n"))),
            "1 of 2: good one");
  EXPECT_EQ(first_record(classification(
                folder.write("rte", "index\tsentence1\tsentence2\tlabel\n0\ta b\tc\tnot_it\n1\td\te\tentails\n"))),
            "1 of 2: a b\tc");
  EXPECT_EQ(
      first_record(classification(folder.write(
          "mrpc", "\xEF\xBB\xBFQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n1\t7\t8\tx y\tz\r\n0\t7\t8\tx\tz\r\n"))),
      "1 of 2: x y\tz");
  EXPECT_EQ(first_record(classification(folder.write("plain", "good one\tyes\nbad\tno\n"))), "1 of 2: good one");
  EXPECT_EQ(first_record(classification(folder.write("ten", "10 a\n9 b\n2 c\n"))), "2 of 3: a") << "labels in order";
  DataConfig config = classification(folder.write("odd", "h1\th2\th3\nA\tx\ttext one\nB\ty\ttext two\n"));
  config.header = "yes";
  config.text_column = 2;
  config.label_column = 0;
  EXPECT_EQ(first_record(config), "0 of 2: text one");
}

TEST(Classification, CutsTheLongerTextFirst) {
  const TemporaryFolder folder;
  const std::string path = folder.write(
      "pairs", "text\tsentence2\tlabel\na b c d e f\tx y\t1\na\tu v w x y z\t0\na b c d e\tu v w x y\t0\n");
  const auto source = open_source(classification(path), {3, 8, 0});
  Batch batch;
  source->fill_evaluation(0, batch);
  EXPECT_EQ(source->decode(row_of(batch.ids("tokens"), 0, 8)), "a b c d\tx y");
  EXPECT_EQ(source->decode(row_of(batch.ids("tokens"), 1, 8)), "a\tu v w x y");
  EXPECT_EQ(source->decode(row_of(batch.ids("tokens"), 2, 8)), "a b c\tu v w");
  EXPECT_EQ(batch.ids("lengths"), (Tokens{8, 8, 8}));
  EXPECT_EQ(batch.ids("targets"), (Tokens{1, 0, 0}));
}

TEST(Classification, NamesWhatIsWrong) {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& text, const std::string& validation = "") {
    DataConfig config = classification(folder.write("t", text));
    if (!validation.empty()) config.validation_path = folder.write("v", validation);
    return error_of([&] { open_source(config, {2, 8, 0}); });
  };
  EXPECT_NE(message("a\tb\tc\n").find("cannot tell text from label"), std::string::npos);
  EXPECT_NE(message("x\t1\nonly\n").find("line 2 has 1 columns"), std::string::npos);
  EXPECT_NE(message("lonely\n").find("line 1"), std::string::npos);
  EXPECT_NE(message("1 a\n1 b\n").find("one label only"), std::string::npos);
  EXPECT_NE(message("1 a\n0 b\n", "2 c\n").find("label '2'"), std::string::npos);
  EXPECT_NE(message("\n\n").find("0 records"), std::string::npos);
  std::string many;
  for (int i = 0; i < 1100; ++i) many += fmt::format("{} text\n", i);
  EXPECT_NE(message(many).find("more than 1000 distinct labels"), std::string::npos);
  DataConfig config = classification(folder.write("t", "1 a\n0 b\n"));
  config.layout = "tsvv";
  EXPECT_NE(error_of([&] { open_source(config, {2, 8, 0}); }).find("did you mean 'tsv'?"), std::string::npos);
}

TEST(Classification, ReadsRealFiles) {
  struct File {
    const char* name;
    std::int64_t classes, records;
  };
  for (const File& file : {File{"glue/CoLA/dev.tsv", 2, 1043},
                           {"glue/RTE/dev.tsv", 2, 277},
                           {"glue/SST-2/dev.tsv", 2, 872},
                           {"glue/MRPC/dev.tsv", 2, 408},
                           {"sentence-classification/TREC.train.all", 6, 5452},
                           {"sentence-classification/stsa.fine.dev", 5, 1101},
                           {"sentence-classification/subj.all", 2, 10000}}) {
    const std::string path = shared_data(file.name);
    if (path.empty()) GTEST_SKIP() << "no " << file.name;
    const auto source = open_source(classification(path), {8, 32, 0});
    EXPECT_EQ(source->classes(), file.classes) << file.name;
    EXPECT_NE(source->describe().find(fmt::format("{} training", file.records)), std::string::npos)
        << source->describe();
  }
}

TEST(Masked, HidesAFixedShare) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 6001; ++i) text += static_cast<char>('a' + i % 26);
  const std::string path = folder.write("t", text);
  DataConfig config{.task = "masked", .path = path, .validation_path = path};
  const auto source = open_source(config, {30, 100, 0});
  config.task = "text";
  const auto plain = open_source(config, {30, 100, 0});
  EXPECT_EQ(source->vocabulary(), 257);
  EXPECT_EQ(source->special().mask, 256);
  double masked = 0, kept = 0, changed = 0;
  std::vector<int> places(100, 0);
  Batch batch, original;
  for (std::uint64_t index = 0; index < 20; ++index) {
    source->fill(index, 3, batch);
    plain->fill(index, 3, original);
    for (std::size_t row = 0; row < 30; ++row) {
      int counted = 0;
      for (std::size_t i = row * 100; i < row * 100 + 100; ++i) {
        if (batch.ids("targets")[i] == kIgnored) {
          EXPECT_EQ(batch.ids("tokens")[i], original.ids("tokens")[i]);
          continue;
        }
        ++counted;
        ++places[i % 100];
        EXPECT_EQ(batch.ids("targets")[i], original.ids("tokens")[i]);
        masked += batch.ids("tokens")[i] == 256;
        kept += batch.ids("tokens")[i] == original.ids("tokens")[i];
        changed += batch.ids("tokens")[i] != 256 && batch.ids("tokens")[i] != original.ids("tokens")[i];
      }
      EXPECT_EQ(counted, 15);
    }
  }
  const double all = masked + kept + changed;  // 9000
  EXPECT_NEAR(masked / all, 0.8, 5 * std::sqrt(0.8 * 0.2 / all));
  EXPECT_NEAR(kept / all, 0.1 + 0.1 / 256, 5 * std::sqrt(0.1 * 0.9 / all));
  for (const int count : places) EXPECT_NEAR(count, 90, 5 * std::sqrt(90 * 0.85));
  EXPECT_EQ(source->decode(Tokens{'a', 256, 'b', 256}), "a<mask>b<mask>");
  source->fill_evaluation(1, batch);
  source->fill_evaluation(1, original);
  EXPECT_EQ(batch.ids("tokens"), original.ids("tokens"));
}

TEST(Masked, RefusesAShareThatIsNone) {
  const TemporaryFolder folder;
  const std::string path = folder.write("t", std::string(100, 'x'));
  for (const double share : {0.0, -1.0, 1.5, std::nan("")}) {
    const DataConfig config{.task = "masked", .path = path, .validation_path = path, .mask_fraction = share};
    EXPECT_NE(error_of([&] { open_source(config, {1, 8, 0}); }).find("mask_fraction"), std::string::npos);
  }
  const DataConfig tiny{.task = "masked", .path = path, .validation_path = path, .mask_fraction = 1e-9};
  Batch batch;
  open_source(tiny, {1, 8, 0})->fill(0, 0, batch);
  EXPECT_EQ(std::count(batch.ids("targets").begin(), batch.ids("targets").end(), kIgnored), 7)
      << "at least one is asked";
}

// Whatever a file holds, every task answers with batches or an Error.
TEST(HostileFiles, NeverCrashATask) {
  const TemporaryFolder folder;
  std::mt19937 random(7);
  int opened = 0, refused = 0;
  const auto bytes = [&](int kind, std::size_t size) {
    static constexpr char kLikely[] = "01 \t\n\r\"{}[]:,.ab\xC3\xA4\xFF";
    std::string text(size, '\0');
    for (char& c : text) {
      c = kind == 0   ? static_cast<char>(random())
          : kind == 1 ? kLikely[random() % (sizeof kLikely - 1)]
                      : static_cast<char>(random() % 255 + 1);
    }
    return text;
  };
  for (int trial = 0; trial < 60; ++trial) {
    const std::string path = folder.write("a", bytes(trial % 3, 1 + random() % 3000));
    const std::string other = folder.write("b", bytes(trial % 3, 1 + random() % 3000));
    for (const std::string& task : task_names()) {
      for (const char* tokenizer : {"bytes", "characters", "words", "gpt2", "sentencepiece"}) {
        for (const bool two : {false, true}) {
          DataConfig config{.task = task, .path = path, .tokenizer = tokenizer};
          if (two) config.validation_path = other;
          if (two) config.target_path = config.validation_target_path = other;
          if (trial % 2 == 0)
            config.tokenizer_path = config.tokenizer == std::string("gpt2") ? folder.path().string() : other;
          try {
            const auto source = open_source(config, {2, 6, 6});
            Batch batch;
            source->fill(1, 2, batch);
            source->fill_evaluation(0, batch);
            ++opened;
            if (source->vocabulary() == 0) continue;  // no tokens
            for (const std::int32_t token : batch.ids("tokens"))
              EXPECT_TRUE(token >= 0 && token < source->vocabulary());
            source->decode(batch.ids("tokens"));
          } catch (const Error&) {
            ++refused;
          }
        }
      }
    }
  }
  EXPECT_GT(opened, 100);
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace norma
