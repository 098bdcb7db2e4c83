// What holds for every source: batches are pure functions of index and seed, and mistakes are named.
#include "norma/data/source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "files.h"

namespace norma {
namespace {

constexpr BatchShape kShape{3, 33, 0};

std::vector<std::string> generated_tasks() {
  std::vector<std::string> all;
  for (const std::string& task : task_names()) {
    if (!reads_files(task)) all.push_back(task);
  }
  return all;
}

bool equal(const Batch& a, const Batch& b) {
  return std::ranges::equal(a.tensors(), b.tensors(), [](const BatchTensor& one, const BatchTensor& other) {
    return one.name == other.name && one.shape == other.shape && one.values == other.values;
  });
}

TEST(Source, SameIndexAndSeedGiveTheSameBatchAnywhere) {
  for (const std::string& task : generated_tasks()) {
    const auto one = open_source({.task = task}, kShape), two = open_source({.task = task}, kShape);
    Batch a, b, other;
    one->fill(1000, 4, a);
    two->fill(0, 4, b);  // what was asked before does not matter
    two->fill(1000, 4, b);
    EXPECT_TRUE(equal(a, b)) << task;
    if (task == "block_model") continue;  // there is one graph, and every step reads all of it
    two->fill(1000, 5, other);
    EXPECT_FALSE(equal(a, other)) << task << ": another seed";
    two->fill(1001, 4, other);
    EXPECT_FALSE(equal(a, other)) << task << ": another index";
    one->fill_evaluation(1, a);
    two->fill_evaluation(1, b);
    EXPECT_TRUE(equal(a, b)) << task;
    for (const std::uint64_t seed : {0, 1}) {
      two->fill(1, seed, b);
      EXPECT_FALSE(equal(a, b)) << task << ": evaluation is held out";
    }
  }
}

TEST(Source, SomeTasksHaveAFormForEncoderDecoders) {
  constexpr BatchShape kTwoSides{3, 33, 20};
  for (const std::string task : {"copy", "reverse", "sort"}) {
    const auto one = open_source({.task = task}, kTwoSides), two = open_source({.task = task}, kTwoSides);
    Batch a, b;
    one->fill(1000, 4, a);
    two->fill(0, 4, b);
    EXPECT_FALSE(equal(a, b)) << task << ": another index";
    two->fill(1000, 4, b);
    EXPECT_TRUE(equal(a, b)) << task;
    two->fill(1000, 5, b);
    EXPECT_FALSE(equal(a, b)) << task << ": another seed";
    two->fill_evaluation(0, b);
    EXPECT_FALSE(equal(a, b)) << task << ": evaluation is held out";
  }
}

TEST(Source, KindsOfTokensHaveATaskWithoutAFile) {
  EXPECT_EQ(tasks_for("onward").front(), "grammar");
  EXPECT_EQ(tasks_for("whole").front(), "masked_grammar");
  EXPECT_EQ(tasks_for("paired").front(), "sort");
}

TEST(Source, TokensStayInTheVocabulary) {
  for (const std::string& task : generated_tasks()) {
    const auto source = open_source({.task = task}, kShape);
    if (source->vocabulary() == 0) continue;  // no tokens
    Batch batch;
    for (std::uint64_t i = 0; i < 20; ++i) {
      source->fill(i, 1, batch);
      ASSERT_EQ(batch.ids("tokens").size(), 99u);
      ASSERT_EQ(batch.ids("targets").size(), 99u);
      for (const std::int32_t token : batch.ids("tokens"))
        EXPECT_TRUE(token >= 0 && token < source->vocabulary()) << task;
      for (const std::int32_t token : batch.ids("targets")) {
        EXPECT_TRUE(token == kIgnored || (token >= 0 && token < source->vocabulary())) << task;
      }
      EXPECT_TRUE(std::ranges::any_of(batch.ids("targets"), [](std::int32_t t) { return t != kIgnored; })) << task;
    }
  }
}

TEST(Batch, ConstantsAreCopiedOnceAndLoseTheirNumberWhenWritten) {
  const Batch::Numbers values = {1, 2, 3, 4}, others = {5, 6, 7, 8};
  const Batch::Ids ids = {1, 2};
  const std::uint64_t content = new_content(), other = new_content();
  EXPECT_NE(content, other);
  Batch batch;
  batch.constant("x", {2, 2}, values, content);
  batch.constant("ids", {2}, ids, other);
  EXPECT_EQ(batch.numbers("x"), values);
  EXPECT_EQ(batch.tensor("x").content, content);
  batch.constant("x", {2, 2}, others, content);
  EXPECT_EQ(batch.numbers("x"), values) << "the number says that it has them";
  batch.constant("x", {4}, values, content);
  EXPECT_EQ(batch.tensor("x").shape, Shape({4}));
  batch.constant("x", {4}, others, other);
  EXPECT_EQ(batch.numbers("x"), others);
  batch.numbers("x", {4})[0] = 9;
  EXPECT_EQ(batch.tensor("x").content, 0);
  batch.constant("x", {4}, others, other);
  EXPECT_EQ(batch.numbers("x"), others);
  batch.ids("ids")[0] = 7;
  EXPECT_EQ(batch.tensor("ids").content, 0);
  EXPECT_EQ(batch.rows(0, 1).tensor("x").content, 0) << "a part is something else";
}

TEST(Source, NamesTheNearestTask) {
  EXPECT_NE(error_of([] { open_source({.task = "gramar"}, kShape); }).find("did you mean 'grammar'?"),
            std::string::npos);
  EXPECT_NE(error_of([] { open_source({.task = ""}, kShape); }).find("expected one of grammar"), std::string::npos);
}

TEST(Source, RefusesImpossibleShapes) {
  for (const BatchShape& shape : {BatchShape{0, 8, 0}, {1, 0, 0}, {-1, 8, 0}, {1, -8, 0}, {1, 8, -1}}) {
    EXPECT_NE(error_of([&] { open_source({}, shape); }), "");
  }
  EXPECT_NE(error_of([] { open_source({}, {1 << 20, 1 << 20, 0}); }).find("expected at most"), std::string::npos);
  EXPECT_NE(error_of([] { open_source({.evaluation_batches = -1}, kShape); }), "");
}

TEST(Source, VocabularyMustFitTheModel) {
  const auto source = open_source({}, kShape);
  EXPECT_NO_THROW(check_vocabulary(*source, 17));
  EXPECT_NO_THROW(check_vocabulary(*source, 64));
  const std::string message = error_of([&] { check_vocabulary(*source, 16); });
  EXPECT_NE(message.find("17 tokens"), std::string::npos);
  EXPECT_NE(message.find("is 16"), std::string::npos);
}

}  // namespace
}  // namespace norma
