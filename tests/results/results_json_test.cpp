// result.json and results.json: written, read and written again they are the same, and a reader takes nothing on trust.
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "error_of.h"
#include "results/made_up.h"

namespace norma {
namespace {

using Json = nlohmann::ordered_json;
using test::error_of;
using test::made_up_results;
using test::made_up_run;

constexpr ResultsKind kKinds[] = {ResultsKind::inspect, ResultsKind::sweep, ResultsKind::study};

// A published file, and how it is read and written again.
struct Published {
  std::string text;
  std::function<std::string(const std::string&)> again;
};

std::vector<Published> all_published() {
  std::vector<Published> all;
  for (const ResultsKind kind : kKinds)
    all.push_back({write_results(made_up_results(kind)),
                   [](const std::string& text) { return write_results(read_results(text, "'results.json'")); }});
  all.push_back({write_result(made_up_run()),
                 [](const std::string& text) { return write_result(read_result(text, "'results.json'")); }});
  return all;
}

// Every value in a document and where it stands.
void for_each_value(const Json& value, const Json::json_pointer& at,
                    const std::function<void(const Json::json_pointer&)>& action) {
  if (!at.empty()) action(at);
  if (value.is_object()) {
    for (const auto& [key, one] : value.items()) for_each_value(one, at / key, action);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) for_each_value(value[i], at / i, action);
  }
}

TEST(ResultsJson, WrittenReadAndWrittenAgainIsTheSame) {
  for (const Published& file : all_published()) EXPECT_EQ(file.again(file.text), file.text);
}

TEST(ResultsJson, ReadingGivesTheValues) {
  const Results results = read_results(write_results(made_up_results(ResultsKind::study)), "it");
  EXPECT_EQ(results.kind, ResultsKind::study);
  EXPECT_EQ(results.environment->command_line[1], "study");
  EXPECT_EQ(results.schemes[0].formulas[1].second, "norm(x)");
  EXPECT_TRUE(std::isnan(results.analyses[0].series[0].y[1].mean));
  EXPECT_EQ(results.analyses[0].series[0].y[1].low, -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(results.analyses[0].series[0].histograms[0].exact);
  EXPECT_EQ(results.runs[0].outcome, Outcome::stable_after_spikes);
  EXPECT_EQ(results.runs[1].verdict(), "diverged at step 17: not finite");
  EXPECT_FALSE(results.runs[3].outcome);
  EXPECT_EQ(results.tuned[0].sensitivity->n, 3);
  EXPECT_FALSE(results.tuned[1].lr);
  EXPECT_EQ(results.verdicts[0].verdict, Judgement::needs_warmup);
  EXPECT_EQ(results.extra_rates[0].edge, RateEdge::largest);
}

TEST(ResultsJson, AnErrorNamesFileFieldAndWhatWasExpected) {
  const auto error = [](const char* pointer, Json value) {
    Json results = Json::parse(write_results(made_up_results(ResultsKind::study)));
    results[Json::json_pointer(pointer)] = std::move(value);
    return error_of([&] { read_results(results.dump(), "'r.json'"); });
  };
  EXPECT_EQ(error("/runs/1/lr", "fast"),
            "'r.json' is damaged: runs[1].lr is \"fast\"; expected a number, \"nan\", \"inf\" or \"-inf\"");
  EXPECT_EQ(error("/kind", "party"), "'r.json' is damaged: kind is \"party\"; expected one of inspect, sweep, study");
  EXPECT_EQ(error("/runs/0/layers", 2.5),
            "'r.json' is damaged: runs[0].layers is 2.5; expected a whole number up to 9223372036854775807");
  EXPECT_EQ(
      error("/runs/0/verdict", "was fun"),
      "'r.json' is damaged: runs[0].verdict is \"was fun\"; expected nothing, or an outcome such as \"stable\" or "
      "\"diverged at step 17: not finite\"");
  EXPECT_EQ(
      error("/maps/0/loss", Json::array()),
      "'r.json' is damaged: maps[0].loss is a list of 0; expected a row for each value of y, with a cell for each "
      "value of x");
  EXPECT_EQ(error("/runs/0/curve/step", Json::array()),
            "'r.json' is damaged: runs[0].curve.loss is a list of 2; expected a loss for each step");
  EXPECT_EQ(error("/advice", nullptr), "'r.json' is damaged: advice is null; expected an object");
  EXPECT_EQ(error_of([] { read_results("{}", "'r.json'"); }), "'r.json' is damaged: it has no 'norma'");
  EXPECT_EQ(error_of([] { read_results("[]", "'r.json'"); }),
            "'r.json' is damaged: it is a list of 0; expected an object");
  EXPECT_EQ(error_of([] { read_results("{", "'r.json'"); }), "'r.json' is damaged: it is not JSON");
  EXPECT_EQ(error_of([] { read_results(std::string(200'000, '['), "'r.json'"); }),
            "'r.json' is damaged: it is not JSON");
}

TEST(ResultsJson, ARunThatContradictsItselfIsRefused) {
  Json run = Json::parse(write_result(made_up_run()));
  run["members"][0]["diverged"] = true;
  EXPECT_EQ(error_of([&] { read_result(run.dump(), "it"); }),
            "it is damaged: members[0].diverged is true; expected what the verdict says");
  run["members"] = Json::array();
  EXPECT_NE(error_of([&] { read_result(run.dump(), "it"); }), "");
}

// Any value anywhere: it is read, or refused with an Error that names the file. Nothing else is thrown.
TEST(ResultsJson, NothingThatStandsInAFileIsTakenOnTrust) {
  const Json strange[] = {nullptr,
                          true,
                          -1,
                          2.5,
                          1e300,
                          "nan",
                          "",
                          Json::array(),
                          Json::object(),
                          18446744073709551615ull,
                          Json::array({nullptr}),
                          Json::object({{"a", 1}})};
  int refused = 0, taken = 0;
  for (const Published& file : all_published()) {
    const Json whole = Json::parse(file.text);
    const auto try_it = [&](const Json& changed) {
      try {
        file.again(changed.dump());
        ++taken;
      } catch (const Error& error) {
        ++refused;
        ASSERT_TRUE(std::string_view(error.what()).starts_with("'results.json' is damaged: ")) << error.what();
      }
    };
    for_each_value(whole, Json::json_pointer(), [&](const Json::json_pointer& at) {
      for (const Json& value : strange) {
        Json changed = whole;
        changed[at] = value;
        try_it(changed);
      }
      Json without = whole;
      without[at.parent_pointer()].is_object() ? void(without[at.parent_pointer()].erase(at.back()))
                                               : void(without[at.parent_pointer()].erase(std::stoul(at.back())));
      try_it(without);
    });
    for (std::size_t length = 0; length + 2 < file.text.size(); length += 97)
      EXPECT_NE(error_of([&] { file.again(file.text.substr(0, length)); }), "") << length;
  }
  EXPECT_GT(refused, 2000);
  EXPECT_GT(taken, 100) << "texts may be anything";
}

TEST(ResultsJson, WhatEarlierVersionsDidNotWriteMayBeMissing) {
  Json study = Json::parse(write_results(made_up_results(ResultsKind::study)));
  study.erase("extra_rates");
  study["unknown"] = {1, 2};
  EXPECT_TRUE(read_results(study.dump(), "it").extra_rates.empty());
  Json run = Json::parse(write_result(made_up_run()));
  run["members"][0].erase("scores");
  EXPECT_TRUE(read_result(run.dump(), "it").members[0].scores.empty());
}

TEST(ResultsJson, EveryOutcomeIsKnownByItsVerdict) {
  const OutcomeFacts facts{.diverged_at_step = 3, .diverged_because = "risen", .stopped_at_step = 4};
  for (const auto& [word, outcome] : kOutcomeWords) {
    EXPECT_EQ(outcome_of_verdict(verdict_of(outcome, facts)), outcome) << word;
    EXPECT_TRUE(verdict_of(outcome, facts).starts_with(word));
  }
  EXPECT_EQ(outcome_of_verdict("stable enough"), std::nullopt);
  EXPECT_EQ(outcome_of_verdict(""), std::nullopt);
}

}  // namespace
}  // namespace norma
