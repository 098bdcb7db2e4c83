// Runs whose data are at fault, or are not.
#include <gtest/gtest.h>

#include <random>

#include "lab/planted_runs.h"
#include "norma/lab/diagnose.h"

namespace norma {
namespace {

using test::TemporaryFolder;
using test::train_small;

std::string random_text(std::size_t length) {
  std::mt19937 random(1);
  const std::string_view letters = "abcdefghijklmnopqrstuvwxyz .,";
  std::string text;
  for (std::size_t i = 0; i < length; ++i) text += letters[random() % letters.size()];
  return text;
}

TEST(Diagnose, DataThatSayNothingAreNoFailure) {
  const TemporaryFolder folder;
  const std::string file = folder.write("random.txt", random_text(200'000));
  const RunHistory run = read_history(
      train_small(folder, "run", {"data.path=" + file, "train.steps=300", "train.lr=0.003", "model.layers=2"}));
  const Diagnosis found = diagnose(run).at(0);
  EXPECT_EQ(found.condition, Condition::nothing_to_learn) << found.words;
  EXPECT_EQ(found.cause, Cause::data_say_nothing) << found.words;
  EXPECT_FALSE(is_failure(found.condition));
}

// These were said to need another scheme (no gradient arrives) or more steps.
TEST(Diagnose, BatchesThatHoldNothingToLearnAreNamed) {
  const TemporaryFolder folder;
  const auto labelled = [](const char* third, const char* other) {
    std::string rows = "text\tlabel\n";
    for (int i = 0; i < 200; ++i) rows += fmt::format("{}\t{}\n", i % 3 == 0 ? third : other, i % 2);
    return rows;
  };
  const std::string padding = folder.write("padding.bin", std::string(8000, '\0'));
  const std::string spaces = folder.write("spaces.txt", std::string(8000, ' '));
  const std::string empty = folder.write("empty.tsv", labelled(" ", " "));
  const std::vector<std::vector<std::string>> runs = {
      {"data.task=tokens", "data.path=" + padding},
      {"data.path=" + spaces, "train.lr=1e-5"},
      {"model.family=encoder", "data.task=masked", "data.path=" + spaces},
      {"model.family=encoder", "data.task=classification", "data.path=" + empty, "data.validation_path=" + empty}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::vector<std::string> changes = runs[i];
    changes.insert(changes.end(), {"train.steps=20", "model.layers=2", "model.time=16"});
    const std::string name = fmt::format("run{}", i);
    const Diagnosis found = diagnose(read_history(train_small(folder, name, changes))).at(0);
    EXPECT_EQ(found.condition, Condition::nothing_to_learn) << i << ": " << found.words;
    EXPECT_EQ(found.cause, Cause::nothing_in_batches) << i << ": " << found.words;
    EXPECT_NE(found.words.find(i + 1 < runs.size() ? "targets are token" : "rows are the same"), std::string::npos)
        << found.words;
    ASSERT_EQ(found.suggestions.size(), 1u);
    EXPECT_NE(found.suggestions[0].because.find("in its batches"), std::string::npos);
  }
  // Two texts with labels at random: there is something to read, and little to learn.
  const std::string file = folder.write("labelled.tsv", labelled("one", "two"));
  const RunHistory run =
      read_history(train_small(folder, "labelled",
                               {"model.family=encoder", "data.task=classification", "data.path=" + file,
                                "data.validation_path=" + file, "train.steps=20", "model.time=16"}));
  EXPECT_NE(diagnose(run).at(0).cause, Cause::nothing_in_batches);
}

TEST(Diagnose, DataThatSaySomethingAreNotBlamed) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += i % 3 == 0 ? "the cat sat on a mat. " : "a dog ran to the house. ";
  const std::string file = folder.write("text.txt", text);
  const RunHistory run =
      read_history(train_small(folder, "run", {"data.path=" + file, "train.steps=100", "train.lr=1e-7"}));
  EXPECT_EQ(diagnose(run).at(0).cause, Cause::rate_too_small) << diagnose(run).at(0).words;
}

}  // namespace
}  // namespace norma
