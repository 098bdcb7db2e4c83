// Next tokens, beam search and sampling, against the whole model and against exhaustive search.
#include "norma/train/generate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "check.h"
#include "norma/train/cohort.h"
#include "norma/train/step.h"

namespace norma {
namespace {

using Tokens = std::vector<std::int32_t>;

constexpr std::int32_t kEnd = 4;
constexpr std::int64_t kVocabulary = 5;

// A model with random weights, large enough that its probabilities are far from equal.
struct RandomModel {
  explicit RandomModel(Family family, std::uint64_t seed, const std::string& scheme = "pre",
                       Positions positions = Positions::learned, bool tied = false) {
    model.config.model = {.family = family,
                          .layers = 2,
                          .encoder_layers = family == "encoder_decoder" ? 1 : 0,
                          .width = 16,
                          .heads = 2,
                          .vocabulary = kVocabulary,
                          .batch = 3,
                          .time = 6,
                          .source_time = family == "encoder_decoder" ? 4 : 0,
                          .scheme = scheme,
                          .positions = positions,
                          .tied = tied,
                          .embedding_std = 1,
                          .head_std = 0.7};
    model.config.train.threads = 1;
    step = build_evaluation_step(model.config.model, true);
    session = std::make_unique<CpuSession>(step.plan, CpuSession::Options{.members = 1, .threads = 1});
    initialise(*session, step.parameters, seed);
    model.weights = [this](const std::string& name) { return std::as_bytes(session->tensor<float>(name)); };
  }

  EvaluationStep step;
  std::unique_ptr<CpuSession> session;
  TrainedModel model;
};

std::vector<Tokens> sources() { return {{1, 2, 3}, {3}, {2, 2, 0, 1}}; }

class Families : public testing::TestWithParam<std::tuple<Family, std::string, Positions, bool>> {};

TEST_P(Families, ThePredictorAgreesWithTheWholeModel) {
  const auto& [family, scheme, positions, tied] = GetParam();
  RandomModel random(family, 3, scheme, positions, tied);
  const std::vector<Tokens> prefixes = {{1, 3, 2, 0, 1, 2}, {2}, {0, 4, 4}};
  const ModelConfig& config = random.model.config.model;
  CpuSession& whole = *random.session;
  Tokens tokens(18, 2), source(12, 3), lengths;
  for (std::size_t row = 0; row < 3; ++row) std::copy(prefixes[row].begin(), prefixes[row].end(), &tokens[row * 6]);
  for (std::size_t row = 0; row < 3; ++row) {
    const Tokens words = sources()[row];
    std::copy(words.begin(), words.end(), &source[row * 4]);
    lengths.push_back(static_cast<std::int32_t>(words.size()));
  }
  whole.write<std::int32_t>("tokens", tokens);
  if (family == "encoder_decoder") {
    whole.write<std::int32_t>("source", source);
    whole.write<std::int32_t>("source_lengths", lengths);
  }
  whole.run();
  Predictor predictor(random.model, 6, 2);
  if (predictor.has_source()) predictor.read_sources(sources());
  std::vector<Tokens> twice;
  for (const Tokens& prefix : prefixes) twice.insert(twice.end(), {prefix, prefix});
  predictor.run(twice);
  const auto logits = whole.tensor<float>("logits");
  for (std::int64_t row = 0; row < 6; ++row) {
    const std::size_t at =
        static_cast<std::size_t>(row / 2 * config.time) + twice[static_cast<std::size_t>(row)].size() - 1;
    double sum = 0;
    for (std::size_t token = 0; token < kVocabulary; ++token) {
      const double expected = static_cast<double>(logits[at * kVocabulary + token]);
      EXPECT_NEAR(static_cast<double>(predictor.logits(row)[token]), expected, 1e-5) << "row " << row;
      sum += std::exp(expected);
    }
    EXPECT_NEAR(predictor.log_sum(row), std::log(sum), 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Families,
                         testing::Values(std::tuple("decoder", "pre", Positions::learned, false),
                                         std::tuple("decoder", "ngpt", Positions::rope, false),
                                         std::tuple("decoder", "post", Positions::sinusoidal, true),
                                         std::tuple("encoder_decoder", "pre", Positions::learned, false),
                                         std::tuple("encoder_decoder", "post", Positions::sinusoidal, true),
                                         std::tuple("encoder_decoder", "deepnorm", Positions::rope, false)));

// Every hypothesis of at most `most` tokens, scored one prefix at a time.
struct Exhaustive {
  Predictor& predictor;
  double alpha;
  std::int64_t most;
  Hypothesis best{.score = -1e30};
  int hypotheses = 0;

  void walk(const Tokens& prefix, const Tokens& said, double log_probability) {
    const Tokens whole = [&] {
      Tokens all = prefix;
      all.insert(all.end(), said.begin(), said.end());
      return all;
    }();
    if (std::ssize(said) == most) return offer(said, log_probability, most, false);
    predictor.run(std::vector<Tokens>(static_cast<std::size_t>(predictor.rows()), whole));
    const std::vector<float> logits(predictor.logits(0).begin(), predictor.logits(0).end());
    const double sum = predictor.log_sum(0);
    for (std::int32_t token = 0; token < kVocabulary; ++token) {
      const double next = log_probability + static_cast<double>(logits[static_cast<std::size_t>(token)]) - sum;
      if (token == kEnd) {
        offer(said, next, std::ssize(said) + 1, true);
        continue;
      }
      Tokens longer = said;
      longer.push_back(token);
      walk(prefix, longer, next);
    }
  }

  void offer(const Tokens& said, double log_probability, std::int64_t length, bool ended) {
    ++hypotheses;
    const double score = log_probability / std::pow((5.0 + static_cast<double>(length)) / 6.0, alpha);
    if (score > best.score) best = {said, log_probability, score, ended};
  }
};

class Searches : public testing::TestWithParam<std::tuple<Family, double>> {};

TEST_P(Searches, AWideBeamFindsWhatExhaustiveSearchFinds) {
  const auto [family, alpha] = GetParam();
  constexpr std::int64_t kMost = 3, kBeam = 4 * 4 * 4 + 4 * 4 + 4 + 1;
  int narrow_misses = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    RandomModel random(family, seed);
    const std::vector<Tokens> prefixes = {{1}, {2, 0}, {3}};
    Predictor wide(random.model, 3 * kBeam, kBeam), narrow(random.model, 3, 1), one(random.model, 1, 1);
    if (wide.has_source()) wide.read_sources(sources());
    if (wide.has_source()) narrow.read_sources(sources());
    const TokenRules rules{.most_tokens = kMost, .end = kEnd};
    const auto found = beam_search(wide, prefixes, rules, {.beam = kBeam, .alpha = alpha});
    const auto greedy = beam_search(narrow, prefixes, rules, {.beam = 1, .alpha = alpha});
    for (std::size_t i = 0; i < prefixes.size(); ++i) {
      if (wide.has_source()) one.read_sources(std::vector<Tokens>{sources()[i]});
      Exhaustive all{.predictor = one, .alpha = alpha, .most = kMost};
      all.walk(prefixes[i], {}, 0);
      EXPECT_EQ(all.hypotheses, kBeam);
      EXPECT_EQ(found[i].tokens, all.best.tokens) << "seed " << seed << " prefix " << i;
      EXPECT_EQ(found[i].ended, all.best.ended);
      EXPECT_NEAR(found[i].score, all.best.score, 1e-5);
      narrow_misses += greedy[i].tokens != all.best.tokens;
    }
  }
  EXPECT_GT(narrow_misses, 0) << "the search is not worth its test";
}

TEST_P(Searches, ABeamOfOneIsGreedy) {
  const auto [family, alpha] = GetParam();
  int ended = 0, cut = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    RandomModel random(family, seed);
    Predictor predictor(random.model, 3);
    if (predictor.has_source()) predictor.read_sources(sources());
    const std::vector<Tokens> prefixes = {{1}, {2, 0}, {3}};
    const TokenRules rules{.most_tokens = 5, .end = kEnd};
    const auto beam = beam_search(predictor, prefixes, rules, {.beam = 1, .alpha = alpha});
    const auto greedy = sample(predictor, prefixes, rules, {.temperature = 0});
    for (std::size_t i = 0; i < prefixes.size(); ++i) {
      EXPECT_EQ(beam[i].tokens, greedy[i].tokens);
      EXPECT_EQ(beam[i].ended, greedy[i].ended);
      EXPECT_DOUBLE_EQ(beam[i].log_probability, greedy[i].log_probability);
      ++(greedy[i].ended ? ended : cut);
    }
  }
  EXPECT_GT(ended, 0);
  EXPECT_GT(cut, 0);
}

INSTANTIATE_TEST_SUITE_P(All, Searches,
                         testing::Combine(testing::Values("decoder", "encoder_decoder"),
                                          testing::Values(0.0, 0.6, 2.0)));

TEST(BeamSearch, ASentenceIsTranslatedAloneAsInABatch) {
  RandomModel random("encoder_decoder", 7);
  const TokenRules rules{.most_tokens = 6, .end = kEnd, .never = {0}};
  Predictor batch(random.model, 9, 3), alone(random.model, 3, 3);
  batch.read_sources(sources());
  const auto together = beam_search(batch, std::vector<Tokens>(3, Tokens{0}), rules, {.beam = 3});
  for (std::size_t i = 0; i < 3; ++i) {
    alone.read_sources(std::vector<Tokens>{sources()[i]});
    const auto single = beam_search(alone, std::vector<Tokens>{{0}}, rules, {.beam = 3});
    EXPECT_EQ(single[0].tokens, together[i].tokens);
    EXPECT_EQ(std::count(single[0].tokens.begin(), single[0].tokens.end(), 0), 0);
  }
}

TEST(Sample, FollowsTheProbabilitiesAndTheSeed) {
  RandomModel random("decoder", 5);
  constexpr std::int64_t kRows = 4000;
  Predictor predictor(random.model, kRows);
  const std::vector<Tokens> prefixes(kRows, Tokens{1, 2});
  const TokenRules rules{.most_tokens = 1};
  const auto counts = [&](const SampleOptions& options) {
    std::map<std::int32_t, double> count;
    for (const Hypothesis& one : sample(predictor, prefixes, rules, options)) count[one.tokens.at(0)] += 1.0 / kRows;
    return count;
  };
  const double temperature = 1.7;
  auto seen = counts({.temperature = temperature, .seed = 9});
  double sum = 0;
  for (const float logit : predictor.logits(0)) sum += std::exp(static_cast<double>(logit) / temperature);
  for (std::int32_t token = 0; token < kVocabulary; ++token) {
    const double p =
        std::exp(static_cast<double>(predictor.logits(0)[static_cast<std::size_t>(token)]) / temperature) / sum;
    EXPECT_NEAR(seen[token], p, 4 * std::sqrt(p * (1 - p) / kRows) + 1e-9) << token;
  }
  EXPECT_EQ(counts({.temperature = temperature, .seed = 9}), seen);
  EXPECT_NE(counts({.temperature = temperature, .seed = 10}), seen);
  EXPECT_EQ(counts({.temperature = temperature, .top_k = 2, .seed = 9}).size(), 2u);
  EXPECT_EQ(counts({.temperature = temperature, .top_k = 1}).size(), 1u);
}

TEST(Sample, GoesOnBeyondTheWindow) {
  RandomModel random("decoder", 2);
  Predictor predictor(random.model, 1);
  const auto said = sample(predictor, std::vector<Tokens>{{1, 2, 3}}, {.most_tokens = 20}, {});
  ASSERT_EQ(said[0].tokens.size(), 20u);
  // The last token follows from the window before it alone.
  const Tokens window(said[0].tokens.end() - 7, said[0].tokens.end() - 1);
  EXPECT_EQ(sample(predictor, std::vector<Tokens>{window}, {.most_tokens = 1}, {})[0].tokens[0], said[0].tokens.back());
}

TEST(Generate, MistakesAreNamed) {
  RandomModel random("encoder_decoder", 1);
  Predictor predictor(random.model, 2, 2);
  const std::vector<Tokens> one = {{1}};
  const auto search = [&](const TokenRules& rules, const BeamOptions& options) {
    return test::error_of([&] { beam_search(predictor, one, rules, options); });
  };
  EXPECT_NE(search({}, {.beam = 0}).find("a beam of 0"), std::string::npos);
  EXPECT_NE(search({}, {.beam = 3}).find("3"), std::string::npos);
  EXPECT_NE(search({.most_tokens = 0}, {.beam = 2}).find("at most 0 tokens"), std::string::npos);
  EXPECT_NE(test::error_of([&] {
              predictor.read_sources(std::vector<Tokens>{{1, 1, 1, 1, 1}});
            }).find("5 tokens"),
            std::string::npos);
  EXPECT_NE(test::error_of([&] { predictor.run(std::vector<Tokens>{{9}}); }).find("9"), std::string::npos);
  EXPECT_NE(test::error_of([] { open_trained("/nowhere/at/all"); }).find("there is no run '/nowhere/at/all'"),
            std::string::npos);
  RandomModel normed("decoder", 1);
  normed.model.config.model.norm = NormKind::instance;
  EXPECT_NE(test::error_of([&] { Predictor(normed.model, 1); }).find("instance_norm, which sees all tokens"),
            std::string::npos);
  RandomModel decoder("decoder", 1);
  decoder.model.config.model.family = "encoder";
  EXPECT_NE(test::error_of([&] { Predictor(decoder.model, 1); }).find("encoder"), std::string::npos);
  decoder.model.config.model.classes = 3;
  EXPECT_NE(test::error_of([&] { Predictor(decoder.model, 1); }).find("classifier"), std::string::npos);
}

}  // namespace
}  // namespace norma
