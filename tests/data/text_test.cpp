// Windows over text: what they hold, in which order, and which files are refused.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "files.h"
#include "norma/data/source.h"

namespace norma {
namespace {

// Bytes 1, 2, ..., 250, 1, ...: a window shows where it lies.
std::string counting(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i % 250 + 1);
  return text;
}

DataConfig text_config(const std::string& path, const std::string& validation = "") {
  return {.task = "text", .path = path, .validation_path = validation};
}

TEST(Text, ShowsEveryWindowOnceAnEpoch) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a", counting(7 * 31 + 5));  // 31 windows of 7, and a rest
  const auto source = open_source(text_config(path, path), {4, 7, 0});
  Batch batch;
  std::map<std::int32_t, int> seen;
  for (std::uint64_t index = 0; index < 31; ++index) {  // 124 rows: four epochs
    source->fill(index, 9, batch);
    for (std::size_t row = 0; row < 4; ++row) {
      ++seen[batch.ids("tokens")[row * 7]];
      for (std::size_t t = 0; t < 7; ++t) {
        EXPECT_EQ(batch.ids("tokens")[row * 7 + t], batch.ids("tokens")[row * 7] + static_cast<int>(t));
        EXPECT_EQ(batch.ids("targets")[row * 7 + t], batch.ids("tokens")[row * 7 + t] + 1);
      }
    }
  }
  EXPECT_EQ(seen.size(), 31u);
  for (const auto& [first, count] : seen) {
    EXPECT_EQ(count, 4) << first;
    EXPECT_EQ((first - 1) % 7, 0);
  }
}

TEST(Text, RandomOrderReachesEveryOffset) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a", counting(40));
  DataConfig config = text_config(path, path);
  config.order = "random";
  const auto source = open_source(config, {8, 31, 0});  // offsets 0 to 8
  Batch batch;
  std::set<std::int32_t> seen;
  for (std::uint64_t index = 0; index < 40; ++index) {
    source->fill(index, 9, batch);
    for (std::size_t row = 0; row < 8; ++row) seen.insert(batch.ids("tokens")[row * 31]);
  }
  EXPECT_EQ(seen, (std::set<std::int32_t>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(Text, SplitsAfterALineAndKeepsPartsApart) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 100; ++i) text += i < 80 ? "aaaaaaaaa\n" : "bbbbbbbbb\n";
  DataConfig config = text_config(folder.write("a", text));
  config.validation_fraction = 0.205;
  config.evaluation_batches = 0;
  const auto source = open_source(config, {3, 10, 0});
  EXPECT_NE(source->describe().find("800 training and 200 validation tokens"), std::string::npos) << source->describe();
  Batch batch;
  for (std::uint64_t i = 0; i < 100; ++i) {
    source->fill(i, 0, batch);
    for (const std::int32_t token : batch.ids("tokens")) EXPECT_TRUE(token == 'a' || token == '\n');
  }
  // 19 windows of 10 in 200 tokens: 7 batches of 3, the last with two rows that are not counted.
  ASSERT_EQ(source->evaluation_batches(), 7);
  int counted = 0;
  for (std::int64_t i = 0; i < 7; ++i) {
    source->fill_evaluation(i, batch);
    for (const std::int32_t target : batch.ids("targets")) {
      counted += target != kIgnored;
      EXPECT_TRUE(target == 'b' || target == '\n' || target == kIgnored);
    }
  }
  EXPECT_EQ(counted, 190);
}

TEST(Text, SpreadsFewEvaluationBatchesOverTheFile) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a", counting(241));
  DataConfig config = text_config(path, path);
  config.evaluation_batches = 2;
  const auto source = open_source(config, {2, 4, 0});
  ASSERT_EQ(source->evaluation_batches(), 2);
  Batch batch;
  std::vector<std::int32_t> firsts;
  for (std::int64_t i = 0; i < 2; ++i) {
    source->fill_evaluation(i, batch);
    firsts.insert(firsts.end(), {batch.ids("tokens")[0], batch.ids("tokens")[4]});
  }
  EXPECT_EQ(firsts, (std::vector<std::int32_t>{1, 61, 121, 181}));
}

TEST(Text, RefusesFilesThatAreNotText) {
  const TemporaryFolder folder;
  const BatchShape shape{2, 8, 0};
  const auto message = [&](const std::string& path) {
    return error_of([&] { open_source(text_config(path), shape); });
  };
  EXPECT_NE(message("").find("set data.path"), std::string::npos);
  EXPECT_NE(message(folder / "missing").find("No such file"), std::string::npos);
  EXPECT_NE(message(folder.path().string()).find("is a folder"), std::string::npos);
  EXPECT_NE(message(folder.write("empty", "")).find("is empty"), std::string::npos);
  EXPECT_NE(message(folder.write("nul", std::string("some text\0 and more of it", 25))).find("byte 9 is NUL"),
            std::string::npos);
  EXPECT_NE(message(folder.write("gz", "\x1f\x8b\x08 and so on, and so on")).find("gzip"), std::string::npos);
  EXPECT_NE(message(folder.write("short", "eight ch")).find("one window of 8 needs 9"), std::string::npos);
  EXPECT_NE(message(folder.write("val", "long enough to train on, not to validate")).find("validation part"),
            std::string::npos);
  const std::string good = folder.write("good", counting(300));
  for (const double fraction : {0.0, 1.0, -0.5, 2.0, std::nan("")}) {
    DataConfig config = text_config(good);
    config.validation_fraction = fraction;
    EXPECT_NE(error_of([&] { open_source(config, shape); }).find("validation_fraction"), std::string::npos);
  }
  DataConfig config = text_config(good);
  config.order = "randm";
  EXPECT_NE(error_of([&] { open_source(config, shape); }).find("did you mean 'random'?"), std::string::npos);
}

TEST(Text, ReadsARealCorpus) {
  const std::string path = shared_data("tinyshakespeare/input.txt");
  if (path.empty()) GTEST_SKIP() << "no tinyshakespeare";
  const auto source = open_source(text_config(path), {16, 64, 0});
  Batch batch;
  source->fill(17, 3, batch);
  const std::string text = read_file(path);
  const std::string row = source->decode(std::span(batch.ids("tokens")).first(64));
  EXPECT_NE(text.find(row), std::string::npos);
}

}  // namespace
}  // namespace norma
