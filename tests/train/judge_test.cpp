// Models that really learn, judged: translation by BLEU, classification and generated tasks by accuracy.
#include "norma/train/judge.h"

#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "check.h"
#include "norma/train/cohort.h"
#include "norma/train/data.h"
#include "temporary_folder.h"

namespace norma {
namespace {

double score(const Scores& scores, const std::string& name) {
  for (const Score& one : scores) {
    if (one.name == name) return one.value;
  }
  ADD_FAILURE() << "there is no score '" << name << "'";
  return -1;
}

// Two layers of width 32 on one thread; `settings` say the rest.
RunConfig small_config(const std::vector<std::string>& settings) {
  RunConfig config;
  for (const char* setting :
       {"model.layers=2", "model.width=32", "model.heads=4", "train.threads=1", "train.probes=false"})
    override_config(config, setting);
  for (const std::string& setting : settings) override_config(config, setting);
  return config;
}

struct Training {
  explicit Training(const std::vector<std::string>& settings)
      : config(small_config(settings)), source(open_data(config)), cohort(config, source) {}

  Scores judged(const JudgeOptions& options = {}) { return judge(trained_model(cohort, 0), *source, options); }

  void train() {
    while (cohort.step() < config.train.steps) cohort.train_step();
    cohort.evaluate();
  }

  RunConfig config;
  std::shared_ptr<const Source> source;
  Cohort cohort;
};

// "the red dog runs ." becomes the translated words in reverse order.
std::string reversed_pairs(int count) {
  const std::vector<std::string> words = {"the", "red", "dog", "runs", "sees", "a", "big", "cat", "and", "sleeps"};
  std::mt19937 random(1);
  std::ostringstream text;
  for (int i = 0; i < count; ++i) {
    std::string source, target;
    const auto length = 3 + random() % 5;
    for (std::size_t k = 0; k < length; ++k) {
      const std::string& word = words[random() % words.size()];
      source += (k > 0 ? " " : "") + word;
      target = word + "o" + (k > 0 ? " " : "") + target;
    }
    text << source << '\t' << target << '\n';
  }
  return text.str();
}

TEST(Judge, AnEncoderDecoderLearnsToTranslate) {
  const test::TemporaryFolder folder;
  Training training({"model.family=encoder_decoder", "model.batch=32", "model.time=10", "model.positions=sinusoidal",
                     "model.embedding_std=1.0", "data.task=translation",
                     "data.path=" + folder.write("reversed.tsv", reversed_pairs(3000)), "data.tokenizer=words",
                     "data.evaluation_batches=4", "train.steps=500", "train.lr=4e-3", "train.warmup=50"});
  const Scores before = training.judged();
  EXPECT_LT(score(before, "bleu"), 20);
  training.train();
  const Scores after = training.judged();
  EXPECT_GT(score(after, "bleu"), 80);
  EXPECT_GT(score(training.judged({.beam = {.beam = 1}}), "bleu"), 80);
  EXPECT_GT(score(after, "accuracy"), 0.9);
  EXPECT_NEAR(score(after, "length_ratio"), 1, 0.1);
  // What training saw at its last evaluation is what is found now.
  EXPECT_NEAR(score(after, "loss"), *training.cohort.member(0).evaluation_loss, 1e-4);
  EXPECT_NEAR(score(after, "accuracy"), *training.cohort.member(0).evaluation_accuracy, 1e-9);
}

// Whether there are more "up" than "down", among other words.
std::string labelled(int count) {
  std::mt19937 random(2);
  std::ostringstream text;
  for (int i = 0; i < count; ++i) {
    int balance = 0;
    std::string words;
    while (balance == 0 || words.size() < 20) {
      const auto kind = random() % 4;
      words += kind == 0 ? " up" : kind == 1 ? " down" : kind == 2 ? " then" : " now";
      balance += kind == 0 ? 1 : kind == 1 ? -1 : 0;
    }
    text << words.substr(1) << '\t' << (balance > 0 ? "rises" : "falls") << '\n';
  }
  return text.str();
}

TEST(Judge, AClassifierLearns) {
  const test::TemporaryFolder folder;
  Training training({"model.family=encoder", "model.width=16", "model.heads=2", "model.batch=32", "model.time=24",
                     "data.task=classification", "data.path=" + folder.write("labelled.tsv", labelled(2000)),
                     "data.tokenizer=words", "data.header=no", "train.steps=200", "train.lr=3e-3"});
  EXPECT_LT(score(training.judged(), "accuracy"), 0.8);
  training.train();
  const Scores after = training.judged();
  EXPECT_GT(score(after, "accuracy"), 0.95);
  EXPECT_NEAR(score(after, "accuracy"), *training.cohort.member(0).evaluation_accuracy, 1e-9);
  EXPECT_EQ(score(after, "records"), score(after, "records_held_out")) << "all of them";
  EXPECT_LT(score(after, "accuracy_low"), score(after, "accuracy")) << "few records";
  EXPECT_GE(score(after, "accuracy_high"), score(after, "accuracy"));
  EXPECT_EQ(after.size(), 6u) << "rows and translations are not for classifiers";
}

TEST(Judge, CountedTargetsOfAGeneratedTask) {
  Training training({"model.heads=2", "model.batch=16", "model.time=16", "data.task=copy", "data.symbols=4",
                     "train.steps=400", "train.lr=5e-3"});
  const Scores before = training.judged();
  EXPECT_LT(score(before, "accuracy"), 0.6);
  EXPECT_LT(score(before, "row_accuracy"), 0.1);
  training.train();
  const Scores after = training.judged();
  EXPECT_GT(score(after, "accuracy"), 0.95);
  EXPECT_LE(score(after, "row_accuracy"), score(after, "accuracy"));
}

TEST(Judge, AnEncoderDecoderLearnsToCopy) {
  Training training({"model.family=encoder_decoder", "model.layers=1", "model.batch=16", "model.time=8",
                     "data.task=copy", "data.symbols=8", "train.steps=400", "train.lr=4e-3"});
  EXPECT_GT(score(training.judged(), "loss"), 1.5);
  training.train();
  const Scores after = training.judged();
  EXPECT_LT(score(after, "loss"), 0.1);
  EXPECT_GT(score(after, "accuracy"), 0.97);
}

TEST(Judge, AnEncoderFindsHiddenSymbolsOfTheGrammar) {
  Training training({"model.family=encoder", "model.batch=32", "model.time=16", "model.embedding_std=1.0",
                     "data.symbols=6", "data.choices=2", "data.depth=2", "train.steps=600", "train.lr=1e-2"});
  EXPECT_EQ(training.cohort.config().data.task, "masked_grammar") << "the usual task of an encoder";
  EXPECT_GT(score(training.judged(), "loss"), 1.7);
  training.train();
  EXPECT_LT(score(training.judged(), "loss"), 1.0) << "a symbol's sibling leaves 2 of 6";
}

TEST(Accuracy, CountsWhatIsCounted) {
  Graph graph;
  const Wire x = graph.input("x", {{2, 3, 2}, DType::f32});
  graph.output("logits", x * 2.0);
  CpuSession session(test::plain_plan(graph));
  session.write<float>("x", std::vector<float>{1, 0, 0, 1, 1, 0, /**/ 0, 1, 0, 1, 1, 1});
  session.run();
  Accuracy accuracy;
  const std::vector<std::int32_t> targets = {0, 0, kIgnored, kIgnored, 1, 0};
  accuracy.add(session, 0, targets);
  EXPECT_EQ(accuracy.counted, 4);
  EXPECT_EQ(accuracy.right, 3);  // of equal logits the first counts
  EXPECT_EQ(accuracy.rows, 2);
  EXPECT_EQ(accuracy.rows_right, 1);
  accuracy.add(session, 0, std::vector<std::int32_t>(6, kIgnored));
  EXPECT_EQ(accuracy.rows, 2);
}

}  // namespace
}  // namespace norma
