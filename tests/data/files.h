// What the tests of data share: texts, files of their own, and where real data lies when there is any.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

#include "error_of.h"
#include "places.h"
#include "temporary_folder.h"

namespace norma {

using test::error_of;
using test::read_file;
using test::TemporaryFolder;

// A file of the data collection beside the repository (or in $NORMA_DATA), or "" when it is not there.
inline std::string shared_data(const std::string& name) {
  const char* folder = std::getenv("NORMA_DATA");
  const std::filesystem::path root =
      folder != nullptr ? std::filesystem::path(folder) : std::filesystem::path(test::kSourceFolder) / "../shared/data";
  const std::filesystem::path path = root / name;
  return std::filesystem::exists(path) ? path.string() : "";
}

inline std::string random_bytes(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random() & 0xFF);
  return bytes;
}

inline std::string nursery_text() {
  std::string text;
  for (int i = 0; i < 200; ++i) {
    text += "the cat sat on the mat and saw " + std::to_string(i * 37 % 100) + " mice\nwhere did  the mice go, cat?\n";
  }
  return text;
}

}  // namespace norma
