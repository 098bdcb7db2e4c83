// The report carries exactly the data it was given, whatever that data says, and refuses what it cannot show.
#include "norma/report/report.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "norma/core/error.h"
#include "report/embedded_page.h"
#include "temporary_folder.h"

namespace norma {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::string_view kOpen = "<script type=\"application/json\" id=\"norma-results\">";

Json tiny() { return {{"norma", "0.1.0"}, {"kind", "study"}, {"created", "2026-01-01T00:00:00Z"}}; }

// What a browser takes as the content of the data element: up to the first "</script", in any case of letters.
std::string data_of(const std::string& report) {
  const std::size_t start = report.find(kOpen);
  EXPECT_NE(start, std::string::npos);
  std::string lower = report;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const std::size_t content = start + kOpen.size();
  return report.substr(content, lower.find("</script", content) - content);
}

std::string message_of(std::string_view json) {
  try {
    make_report(json);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Report, CarriesTheResults) {
  Json results = tiny();
  results["runs"] = {{{"id", "a"}, {"final_loss", 1.25}}, {{"id", "b"}, {"final_loss", "nan"}}};
  const std::string report = make_report(results.dump(2));
  EXPECT_TRUE(report.starts_with("<!doctype html>"));
  EXPECT_EQ(Json::parse(data_of(report)), results);
}

TEST(Report, IsTheEmbeddedPageAroundTheResults) {
  const std::string json = tiny().dump(), report = make_report(json);
  const std::string_view page = embedded_page();
  const std::size_t at = report.find(json);
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(report.substr(0, at), page.substr(0, at));
  EXPECT_TRUE(page.ends_with(report.substr(at + json.size())));
}

TEST(Report, NoTextLeavesTheDataElement) {
  for (const char* hostile :
       {"</script><script>alert(1)</script>", "</SCRIPT ><img src=x onerror=alert(1)>", "<!--<script>", "-->", "]]>",
        "\\u003c/script>", "\"},{\"", "/*norma:results*/", "$& $` $' \\1 {0} {}", "\xe2\x80\xa8\xe2\x80\xa9", "<"}) {
    Json results = tiny();
    results["notes"] = {hostile};
    results[hostile] = hostile;
    const std::string report = make_report(results.dump());
    const std::string data = data_of(report);
    EXPECT_EQ(data.find('<'), std::string::npos) << hostile;
    EXPECT_EQ(Json::parse(data), results) << hostile;
    // Nothing but the data differs between two reports.
    EXPECT_EQ(report.size() - data.size(), embedded_page().size() - std::string_view("/*norma:results*/").size());
  }
}

TEST(Report, ThePageAsksForNothingFromOutside) {
  const std::string_view page = embedded_page();
  EXPECT_NE(page.find("Content-Security-Policy"), std::string_view::npos);
  EXPECT_NE(page.find("default-src 'none'"), std::string_view::npos);
  for (const char* outside : {"<script src", "<link ", "<iframe", "@import", "src=\"http", "href=\"http"}) {
    EXPECT_EQ(page.find(outside), std::string_view::npos) << outside;
  }
  EXPECT_LT(page.size(), 400'000u);
}

TEST(Report, RefusesWhatIsNotJson) {
  EXPECT_NE(message_of("").find("not JSON at byte"), std::string::npos) << message_of("");
  EXPECT_NE(message_of("{\"norma\": ").find("not JSON at byte"), std::string::npos);
  EXPECT_NE(message_of(tiny().dump() + "x").find("not JSON at byte"), std::string::npos);
  EXPECT_NE(message_of("{\"norma\": \"\xff\"}").find("not JSON at byte"), std::string::npos);
  EXPECT_NE(message_of("{\"norma\": NaN}").find("not JSON at byte"), std::string::npos);
  EXPECT_NE(message_of(std::string(100'000, '[')).find("not JSON at byte"), std::string::npos);
}

TEST(Report, RefusesJsonThatIsNotResults) {
  EXPECT_NE(message_of("[]").find("not an object"), std::string::npos);
  EXPECT_NE(message_of("3").find("not an object"), std::string::npos);
  for (const char* key : {"norma", "kind", "created"}) {
    Json results = tiny();
    results.erase(key);
    EXPECT_NE(message_of(results.dump()).find(key), std::string::npos) << message_of(results.dump());
    results[key] = 7;
    EXPECT_NE(message_of(results.dump()).find(key), std::string::npos);
    results[key] = {{"kind", "study"}};  // a key of the same name further inside does not count
    EXPECT_NE(message_of(results.dump()).find(key), std::string::npos);
  }
}

TEST(Report, RefusesAKindItDoesNotKnow) {
  Json results = tiny();
  results["kind"] = "poem";
  EXPECT_EQ(message_of(results.dump()), "the results are of kind 'poem'; a report shows inspect, study or sweep");
  for (const char* kind : {"inspect", "study", "sweep"}) {
    results["kind"] = kind;
    EXPECT_EQ(message_of(results.dump()), "");
  }
}

TEST(Report, TakesDeepAndMarkedInput) {
  const std::string deep = std::string(20'000, '[') + std::string(20'000, ']');
  Json results = tiny();
  std::string json = results.dump();
  json.insert(json.size() - 1, ",\"deep\":" + deep);
  EXPECT_NE(make_report(json).find(deep), std::string::npos);
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
  write_report(path, tiny().dump());
  EXPECT_EQ(read(), make_report(tiny().dump()));
  EXPECT_THROW(write_report(path, "{}"), Error);
  EXPECT_EQ(read(), make_report(tiny().dump()));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
  EXPECT_THROW(write_report(folder / "missing/report.html", tiny().dump()), Error);
}

}  // namespace
}  // namespace norma
