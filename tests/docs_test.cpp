// What the pages point to is there: links and their headings, files, and tests by name.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "places.h"

namespace norma {
namespace {

namespace fs = std::filesystem;

const fs::path kDocumented = test::kSourceFolder;  // the tree that the pages are of

std::string read(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// From the root: "README.md", "docs/study.md".
std::vector<std::string> pages() {
  std::vector<std::string> found = {"README.md", "CONTRIBUTING.md", "CHANGELOG.md"};
  for (const fs::directory_entry& entry : fs::directory_iterator(kDocumented / "docs"))
    if (entry.path().extension() == ".md") found.push_back("docs/" + entry.path().filename().string());
  return found;
}

// The first group of every match, or the match itself.
std::vector<std::string> all_matches(const std::string& text, const std::regex& pattern) {
  std::vector<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match)
    found.push_back(match->size() > 1 ? (*match)[1].str() : match->str());
  return found;
}

std::string without_blocks(const std::string& page) {
  std::istringstream lines(page);
  std::string kept;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    const bool border = line.find("```") != std::string::npos;
    if (!border && !inside) kept += line + "\n";
    inside = inside != border;
  }
  return kept;
}

// What a heading is called in a link: "A row norm, in an hour" is a-row-norm-in-an-hour.
std::set<std::string> headings(const std::string& page) {
  std::istringstream lines(without_blocks(page));
  std::set<std::string> found;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("#")) continue;
    std::string name;
    for (const char c : line.substr(line.find_first_not_of("# "))) {
      const auto letter = static_cast<unsigned char>(c);
      if (std::isalnum(letter) != 0 || c == '-' || c == '_') name += static_cast<char>(std::tolower(letter));
      if (c == ' ') name += '-';
    }
    found.insert(name);
  }
  return found;
}

TEST(Docs, EveryLinkLeadsSomewhere) {
  int links = 0;
  for (const std::string& page : pages()) {
    for (const std::string& link : all_matches(read(kDocumented / page), std::regex(R"(\]\(([^)\s]+)\))"))) {
      if (link.starts_with("http")) continue;
      ++links;
      const std::string path = link.substr(0, link.find('#'));
      const fs::path target = path.empty() ? kDocumented / page : (kDocumented / page).parent_path() / path;
      EXPECT_TRUE(fs::exists(target)) << page << ": " << link;
      if (link.size() == path.size() || !fs::exists(target)) continue;
      EXPECT_TRUE(headings(read(target)).contains(link.substr(path.size() + 1))) << page << ": " << link;
    }
  }
  EXPECT_GT(links, 50);
}

TEST(Docs, EveryFileThatIsNamedExists) {
  const std::set<std::string> examples = {"schemes/mine.toml", "src/models/mine", "src/models/mine/family.h",
                                          "tests/families/mine_test.cpp", "tests/golden/diagrams/mine.txt"};
  const std::regex folders(
      "`((?:src|include|tests|bench|tools|docs|schemes|examples|cmake|web|fuzz|cli|norma|core|graph|device|ops|norms|"
      "models|theory|train|lab|report|store|data)/[A-Za-z0-9_./-]+)[` ]");
  int paths = 0;
  for (const std::string& page : pages()) {
    if (page == "CHANGELOG.md") continue;  // speaks of what was
    for (const std::string& path : all_matches(without_blocks(read(kDocumented / page)), folders)) {
      ++paths;
      const bool exists =
          std::ranges::any_of(std::vector<std::string>{"", "include", "include/norma", "src"},
                              [&](const std::string& top) { return fs::exists(kDocumented / top / path); });
      EXPECT_TRUE(exists || examples.contains(path)) << page << ": " << path;
    }
  }
  EXPECT_GT(paths, 50);
}

// "Suite.Name" of every test of Google's, and what CMake files call NAME.
std::set<std::string> test_names() {
  const std::regex test(R"(\n\s*(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+,\s*\w+)\))"), named(R"(NAME ([\w.]+))");
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kDocumented / "tests")) {
    const std::string kind = entry.path().extension().string();
    if (!entry.is_regular_file() || (kind != ".cpp" && kind != ".h" && kind != ".cmake" && kind != ".txt")) continue;
    if (entry.path().string().find("/golden/") != std::string::npos) continue;
    const std::string text = read(entry.path());
    for (std::string name : all_matches(text, test)) {
      name.erase(std::remove_if(name.begin(), name.end(), [](unsigned char c) { return std::isspace(c) != 0; }),
                 name.end());
      std::replace(name.begin(), name.end(), ',', '.');
      names.insert(name);
    }
    for (const std::string& name : all_matches(text, named)) names.insert(name);
  }
  return names;
}

// `Suite.Name`, or `Suite.Beginning*`, where the star stands for anything.
TEST(Docs, EveryTestThatIsNamedExists) {
  const std::set<std::string> names = test_names();
  ASSERT_GT(names.size(), 500u);
  int named = 0;
  for (const std::string& page : pages()) {
    if (page == "CHANGELOG.md") continue;
    for (const std::string& name : all_matches(without_blocks(read(kDocumented / page)),
                                               std::regex(R"([`'=]([A-Z][A-Za-z0-9]+\.[A-Z*][A-Za-z0-9*]*)[`'])"))) {
      ++named;
      const std::regex pattern(std::regex_replace(name, std::regex(R"(\*)"), ".*"));
      EXPECT_TRUE(std::ranges::any_of(names, [&](const std::string& one) { return std::regex_match(one, pattern); }))
          << page << ": " << name;
    }
  }
  EXPECT_GT(named, 30);
}

}  // namespace
}  // namespace norma
