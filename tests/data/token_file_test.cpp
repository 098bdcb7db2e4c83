// Files of token ids as nanoGPT and llm.c write them.
#include <gtest/gtest.h>

#include <random>

#include "files.h"
#include "norma/data/source.h"

namespace norma {
namespace {

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <typename T>
std::vector<T> counting(std::size_t size) {
  std::vector<T> values(size);
  for (std::size_t i = 0; i < size; ++i) values[i] = static_cast<T>(i);
  return values;
}

std::string header(std::int32_t magic, std::int32_t version, std::int32_t count) {
  std::vector<std::int32_t> words(256, 0);
  words[0] = magic;
  words[1] = version;
  words[2] = count;
  return bytes_of(words);
}

DataConfig tokens_config(const std::string& path, std::int64_t vocabulary = 0) {
  return {.task = "tokens", .path = path, .vocabulary = vocabulary};
}

void expect_counting(const std::string& path, std::int64_t vocabulary) {
  const auto source = open_source(tokens_config(path), {2, 7, 0});
  EXPECT_EQ(source->vocabulary(), vocabulary);
  Batch batch;
  source->fill(3, 1, batch);
  for (std::size_t i = 0; i < batch.ids("tokens").size(); ++i) {
    EXPECT_EQ(batch.ids("tokens")[i] % 7, static_cast<int>(i % 7));
    EXPECT_EQ(batch.ids("targets")[i], batch.ids("tokens")[i] + 1);
    EXPECT_LT(batch.ids("targets")[i], 270);
  }
  source->fill_evaluation(0, batch);
  EXPECT_EQ(batch.ids("tokens")[0], 270);  // the last tenth
}

TEST(TokenFile, ReadsNanoGptAndLlmC) {
  const TemporaryFolder folder;
  expect_counting(folder.write("raw", bytes_of(counting<std::uint16_t>(300))), 300);
  expect_counting(folder.write("one", header(20240520, 1, 300) + bytes_of(counting<std::uint16_t>(300))), 300);
  expect_counting(folder.write("seven", header(20240801, 7, 300) + bytes_of(counting<std::uint32_t>(300))), 300);
  // What lies behind the count is not data.
  expect_counting(folder.write("more", header(20240520, 1, 300) + bytes_of(counting<std::uint16_t>(320))), 300);
}

TEST(TokenFile, ChecksTheVocabulary) {
  const TemporaryFolder folder;
  auto tokens = counting<std::uint16_t>(10000);
  const std::string path = folder.write("raw", bytes_of(tokens));
  EXPECT_EQ(open_source(tokens_config(path, 10000), {1, 8, 0})->vocabulary(), 10000);
  EXPECT_EQ(open_source(tokens_config(path, 50304), {1, 8, 0})->vocabulary(), 50304);
  EXPECT_NE(error_of([&] {
              open_source(tokens_config(path, 9000), {1, 8, 0});
            }).find("token 9000 is 9000; the vocabulary has 9000"),
            std::string::npos);
  DataConfig config = tokens_config(folder.write("small", bytes_of(counting<std::uint16_t>(100))));
  config.validation_path = path;
  EXPECT_EQ(open_source(config, {1, 8, 0})->vocabulary(), 10000);
  auto words = counting<std::uint32_t>(50);
  words[41] = 0xFFFFFFFF;
  const std::string wide = folder.write("wide", header(20240801, 7, 50) + bytes_of(words));
  EXPECT_NE(error_of([&] {
              open_source(tokens_config(wide), {1, 2, 0});
            }).find("token 41 is 4294967295"),
            std::string::npos);
}

TEST(TokenFile, RefusesOtherFiles) {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& bytes) {
    const std::string path = folder.write("x", bytes);
    return error_of([&] { open_source(tokens_config(path, 50257), {2, 8, 0}); });
  };
  EXPECT_NE(message("").find("empty"), std::string::npos);
  EXPECT_NE(message("abc").find("even number"), std::string::npos);
  EXPECT_NE(message("ab").find("one window of 8 needs 9"), std::string::npos);
  EXPECT_NE(message(header(20240520, 2, 1)).find("version 2"), std::string::npos);
  EXPECT_NE(message(header(20240520, 1, 5)).find("says it has 5 tokens"), std::string::npos);
  EXPECT_NE(message(header(20240520, 1, -5)).find("says it has -5 tokens"), std::string::npos);
  EXPECT_NE(message(header(20240801, 7, 2147483647) + "abcd").find("hold 1"), std::string::npos);
  EXPECT_NE(error_of([] { open_source(tokens_config(""), {1, 8, 0}); }).find("data.path"), std::string::npos);
  std::mt19937 random(1);
  for (int i = 0; i < 50; ++i) {
    std::string bytes(200 + i, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    EXPECT_NE(message(bytes), "");  // odd, or a token beyond 50257 among a hundred
  }
}

}  // namespace
}  // namespace norma
