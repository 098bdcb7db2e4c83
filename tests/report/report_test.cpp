// The report carries exactly the data it was given, whatever that data says, and refuses what it cannot show.
#include "norma/report/report.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "norma/core/error.h"
#include "norma/report/run_report.h"
#include "report/embedded_page.h"
#include "results/made_up.h"
#include "temporary_folder.h"

namespace norma {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::string_view kOpen = "id=\"norma-results\"";
constexpr ResultsKind kKinds[] = {ResultsKind::inspect, ResultsKind::sweep, ResultsKind::study};

Json made_up(ResultsKind kind = ResultsKind::study) { return Json::parse(write_results(test::made_up_results(kind))); }

// What a browser takes as the content of the data element: up to the first "</script", in any case of letters.
std::string data_of(const std::string& report) {
  const std::size_t start = report.find('>', report.find(kOpen)) + 1;
  std::string lower = report;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return report.substr(start, lower.find("</script", start) - start);
}

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::string message_of(std::string_view json) {
  try {
    make_report(json, "'results.json'");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// A run has a configuration; networks at initialisation have none.
TEST(Report, AnInspectionSaysWhetherTheModelWasTrained) {
  Results results = test::made_up_results(ResultsKind::inspect);
  const std::string trained = make_report(write_results(results));
  const auto heading_of = [](const std::string& page) {
    const std::size_t from = page.find("<h1>") + 4;
    return page.substr(from, page.find("</h1>") - from);
  };
  EXPECT_NE(heading_of(trained).find(" layers"), std::string::npos)
      << "it opens with what was found: " << heading_of(trained);
  EXPECT_NE(trained.find(">What the layers of a trained model are worth."), std::string::npos);
  EXPECT_NE(trained.find("Inside the trained model"), std::string::npos);
  EXPECT_EQ(trained.find("Before training"), std::string::npos);
  results.config.clear();
  EXPECT_NE(make_report(write_results(results)).find(">What layers are worth at initialisation"), std::string::npos);
  results.depth_use.clear();
  const std::string start = make_report(write_results(results));
  EXPECT_NE(heading_of(start).find(" it grows for "), std::string::npos) << heading_of(start);
  const std::size_t again = start.find("<p>" + heading_of(start));
  EXPECT_TRUE(again == std::string::npos || again > start.find("one by one")) << "said once, and where it is folded";
  const std::size_t about = start.find("<p class=\"standfirst\">");
  const std::string scale = start.substr(about, start.find("</p>", about) - about);
  EXPECT_NE(scale.find(" at initialisation, at 2 and 4 layers, 3 networks of each."), std::string::npos) << scale;
  EXPECT_NE(start.find("Before training"), std::string::npos);
}

TEST(Report, CarriesTheResults) {
  for (const ResultsKind kind : kKinds) {
    const Json results = made_up(kind);
    const std::string report = make_report(results.dump(2));
    EXPECT_TRUE(report.starts_with("<!doctype html>"));
    EXPECT_EQ(Json::parse(data_of(report)), results);
    EXPECT_EQ(count_of(report, "<h1>"), 1u);
    EXPECT_EQ(report.find("norma:"), report.find("norma: ")) << "every place of the page was filled";
  }
}

TEST(Report, SeveralDepthsAreOnePageWithAFigureAndALinkForEach) {
  const std::string results = made_up().dump();
  const std::string report = make_depths_report({{12, "study/layers-12", results}, {48, "study/layers-48", results}});
  EXPECT_EQ(count_of(report, "<h1>"), 1u);
  for (const char* part : {"href=\"layers-12/report.html\"", "href=\"layers-48/report.html\"", "id=\"loss-12\"",
                           "id=\"loss-48\"", "<th scope=\"col\">48 layers</th>"})
    EXPECT_EQ(count_of(report, part), 1u) << part;
}

// The page said "1 layers", and gave runs and time of the deepest study for those of all.
TEST(Report, OneLayerIsOneAndAllStudiesAreCounted) {
  const std::string results = made_up().dump();
  const std::string report = make_depths_report({{1, "study/layers-1", results}, {48, "study/layers-48", results}});
  EXPECT_EQ(report.find("1 layers"), std::string::npos) << report.substr(report.find("1 layers"), 60);
  for (const char* part : {"<th scope=\"col\">1 layer</th>", "The whole study at 1 layer<", ">1 layer</h2>"})
    EXPECT_EQ(count_of(report, part), 1u) << part;
  const auto runs = static_cast<std::size_t>(made_up().at("runs").size());
  EXPECT_NE(report.find(std::to_string(2 * runs) + " runs"), std::string::npos) << runs;
}

TEST(Report, NoTextLeavesItsPlace) {
  const std::string harmless = make_report(made_up().dump());
  for (const char* hostile : {"</script><script>alert(1)</script>", "</SCRIPT ><img src=x onerror=alert(1)>",
                              "<!--<script>", "-->", "]]>", "\\u003c/script>", "\"},{\"", "/*norma:results*/",
                              "$& $` $' \\1 {0} {}", "\xe2\x80\xa8\xe2\x80\xa9", "<", "\" onload=\"x"}) {
    Json results = made_up();
    results["notes"] = {hostile};
    results["command"] = hostile;
    results["advice"]["words"] = hostile;
    results["schemes"][0]["title"] = hostile;
    results["schemes"][0]["diagram_text"] = hostile;
    results["schemes"][0]["formulas"]["sublayer"] = hostile;
    results["inspect"][0]["title"] = hostile;
    results["inspect"][0]["name"] = hostile;
    results["inspect"][0]["about"] = hostile;
    const std::string report = make_report(results.dump());
    EXPECT_EQ(data_of(report).find('<'), std::string::npos) << hostile;
    EXPECT_EQ(Json::parse(data_of(report)), results) << hostile;
    EXPECT_EQ(report.find("<img"), std::string::npos) << hostile;
    for (const char* tag : {"<script", "<svg", "<details", "<figure", "<path d=\"M0"})
      EXPECT_EQ(count_of(report, tag), count_of(harmless, tag)) << hostile << " " << tag;
  }
}

TEST(Report, ThePageAsksForNothingFromOutside) {
  const std::string_view page = embedded_page();
  EXPECT_NE(page.find("Content-Security-Policy"), std::string_view::npos);
  EXPECT_NE(page.find("default-src 'none'"), std::string_view::npos);
  for (const char* outside : {"<script src", "<link ", "<iframe", "@import", "src=\"http", "href=\"http"}) {
    EXPECT_EQ(page.find(outside), std::string_view::npos) << outside;
  }
  EXPECT_LT(page.size(), 60'000u);
}

TEST(Report, RefusesWhatIsNotJson) {
  const std::string whole = made_up().dump();
  for (const std::string& bad :
       {std::string(), std::string("{\"norma\": "), whole + "x", std::string("{\"norma\": \"\xff\"}"),
        std::string("{\"norma\": NaN}"), std::string(100'000, '[')}) {
    EXPECT_NE(message_of(bad).find("not JSON at byte"), std::string::npos) << message_of(bad);
  }
}

TEST(Report, RefusesJsonThatIsNotResults) {
  EXPECT_NE(message_of("[]").find("not an object"), std::string::npos);
  for (const char* key : {"norma", "kind", "created"}) {
    Json results = made_up();
    results.erase(key);
    EXPECT_NE(message_of(results.dump()).find(key), std::string::npos) << message_of(results.dump());
    results[key] = {{"kind", "study"}};  // a key of the same name further inside does not count
    EXPECT_NE(message_of(results.dump()).find(key), std::string::npos);
  }
  Json results = made_up();
  results["kind"] = "poem";
  EXPECT_EQ(message_of(results.dump()), "the results are of kind 'poem'; a report shows inspect, study or sweep");
  results = made_up();
  results["runs"][0]["lr"] = "fast";
  EXPECT_NE(message_of(results.dump()).find("'results.json' is damaged: runs[0].lr"), std::string::npos)
      << message_of(results.dump());
}

TEST(Report, TakesAByteOrderMark) {
  const Json results = made_up();
  EXPECT_EQ(Json::parse(data_of(make_report("\xef\xbb\xbf" + results.dump()))), results);
}

TEST(Report, IsWrittenWholeOrNotAtAll) {
  const test::TemporaryFolder folder;
  const fs::path path = folder / "report.html";
  const auto read = [&] {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  };
  const std::string json = made_up().dump();
  write_report(path, json);
  EXPECT_EQ(read(), make_report(json));
  EXPECT_THROW(write_report(path, "{}"), Error);
  EXPECT_EQ(read(), make_report(json));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
  EXPECT_THROW(write_report(folder / "missing/report.html", json), Error);
}

TEST(RunReport, ShowsHowARunEndedAndItsCurves) {
  RunReport run{.name = "runs/<a>",
                .command = "norma train",
                .config = "[train]\n",
                .created = "2026-01-02T00:00:00Z",
                .result = test::made_up_run()};
  run.members = {{{{1, 2, 3}, {3, 2.5, 2}}, {{2, 3}, {2.6, 2.1}}}, {{{1, 2}, {3, 4}}, {}}, {}};
  run.metrics = {{"gradient norm", "norm", true, {1, 2, 3}, {1, 0.5, 0}}};
  run.findings = {"One member diverged at step 17.", "Try a smaller rate."};
  run.json = write_result(run.result);
  const std::string page = make_run_report(run);
  for (const char* part : {"id=\"curves\"", "id=\"metrics\"", "diverged at step 17: not finite", "Try a smaller rate.",
                           "2 January 2026", "runs/&lt;a&gt;"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(Json::parse(data_of(page)), Json::parse(run.json));
  EXPECT_FALSE(make_run_report({.name = "empty", .result = {}}).empty());
}

// They stood behind the loss, with the ends of their interval in columns apart; a member without scores moved the rest.
TEST(RunReport, SpeaksOfRightAnswersFirstAndOfSquaredErrorsByName) {
  RunReport run{.name = "run", .result = test::made_up_run()};
  run.result.members.resize(1);
  MemberResult& only = run.result.members.front();
  only.outcome = Outcome::stable;
  only.evaluation_loss = 0.25;
  only.scores = {{"loss", 0.25}, {"accuracy", 0.9}, {"accuracy_low", 0.8}, {"accuracy_high", 0.95}, {"records", 128}};
  const std::string page = make_run_report(run);
  EXPECT_NE(page.find("stable, 90.0\u00a0% (80.0 to 95.0) right, held-out loss 0.250."), std::string::npos);
  const auto accuracy = page.find(">Accuracy</th>"), loss = page.find(">Held-out loss</th>");
  ASSERT_NE(accuracy, std::string::npos);
  EXPECT_LT(accuracy, loss);
  EXPECT_NE(page.find("80.0\u00a0% to 95.0\u00a0%"), std::string::npos);
  EXPECT_EQ(page.find("Accuracy low"), std::string::npos);
  run.result.members.push_back(only);
  run.result.members.front().scores.clear();
  EXPECT_NE(make_run_report(run).find(">Accuracy</th>"), std::string::npos) << "the first member has no scores";
  RunReport denoiser{.name = "run", .result = run.result, .unit = "mean squared error"};
  denoiser.result.members.resize(1);
  EXPECT_NE(make_run_report(denoiser).find("stable, held-out mean squared error 0.250."), std::string::npos);
}

}  // namespace
}  // namespace norma
