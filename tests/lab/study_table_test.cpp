// The table of a study, from made-up evidence.
#include <gtest/gtest.h>

#include <sstream>

#include "lab/study/describe.h"
#include "lab/study/parts.h"
#include "lab/study/verdict.h"
#include "lab/verdict_check.h"
#include "norma/lab/study.h"

namespace norma {
namespace {

TEST(Table, LossesOfShortRunsDoNotStandBesideThoseOfTheFinal) {
  Results results = new_results(ResultsKind::study);
  for (const char* scheme : {"a", "b"}) {
    results.verdicts.push_back({.scheme = scheme, .verdict = Judgement::stable});
    Tuned& tuned = results.tuned.emplace_back();
    tuned.scheme = scheme;
    tuned.loss = {2.833, 2.833, 2.833, 2};
    tuned.lr = 1e-3;
  }
  const auto count = [&] {
    const std::string table = study_table(results);
    std::size_t found = 0;
    for (std::size_t at = table.find("2.833  "); at != std::string::npos; at = table.find("2.833  ", at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count(), 4u) << "all of one length\n" << study_table(results);
  results.tuned[0].steps = 400;
  EXPECT_EQ(count(), 2u) << study_table(results);
}

TEST(Table, ARankCountsWhatLastsAndThePlaceNowWhatIsTold) {
  Results results = new_results(ResultsKind::study);
  for (const char* scheme : {"a", "b", "c", "d"}) {
    results.verdicts.push_back({.scheme = scheme, .verdict = Judgement::stable});
    results.advice.ranking.push_back(scheme);
  }
  const auto line_of = [&](const std::string& scheme) {
    std::istringstream lines(study_table(results));
    std::string rank, now, name;
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      if (words >> rank >> now >> name && name == scheme) return rank + " " + now;
    }
    return std::string("none");
  };
  EXPECT_EQ(line_of("a"), "- -") << "short runs that chose the settings are no comparison";
  const auto pair = [](const char* a, const char* b, double mean, bool apart, bool lasting) {
    Comparison one{.a = a, .b = b, .apart = apart, .lasting = lasting};
    one.difference.mean = mean;
    return one;
  };
  results.comparisons = {pair("a", "b", -0.1, false, false), pair("a", "c", -0.3, true, true),
                         pair("c", "b", 0.2, true, false)};
  EXPECT_EQ(line_of("a"), "1-2 1-2");
  EXPECT_EQ(line_of("b"), "1-3 1-2");
  EXPECT_EQ(line_of("c"), "2-3 3");
  EXPECT_EQ(line_of("d"), "- -") << "it was not in the final";
}

}  // namespace
}  // namespace norma
