// Golden files: what must be printed, with a readable difference. NORMA_UPDATE_GOLDEN=1 writes them anew.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "places.h"

namespace norma::test {

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// "" when the texts are equal; otherwise the first lines that differ, with some around them.
inline std::string difference(const std::string& expected, const std::string& found) {
  if (expected == found) return "";
  const std::vector<std::string> before = lines_of(expected), after = lines_of(found);
  std::size_t first = 0;
  while (first < std::min(before.size(), after.size()) && before[first] == after[first]) ++first;
  std::ostringstream said;
  said << "first difference in line " << first + 1 << ":\n";
  for (std::size_t i = first < 3 ? 0 : first - 3; i < first; ++i) said << "   " << before[i] << "\n";
  for (std::size_t i = first; i < std::min(first + 4, before.size()); ++i) said << " - " << before[i] << "\n";
  for (std::size_t i = first; i < std::min(first + 4, after.size()); ++i) said << " + " << after[i] << "\n";
  return said.str();
}

inline void expect_golden(const std::string& file, const std::string& text) {
  const std::filesystem::path path = std::filesystem::path(test::kSourceFolder) / "tests" / "golden" / file;
  if (std::getenv("NORMA_UPDATE_GOLDEN") != nullptr) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  std::ifstream stream(path);
  ASSERT_TRUE(stream) << path << " does not exist; NORMA_UPDATE_GOLDEN=1 writes it";
  const std::string golden(std::istreambuf_iterator<char>(stream), {});
  const std::string said = difference(golden, text);
  EXPECT_TRUE(said.empty()) << path << ", " << said;
}

}  // namespace norma::test
