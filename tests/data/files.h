// What the tests of data share: files of their own, and where real data lies when there is any.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "error_of.h"
#include "temporary_folder.h"

namespace norma {

using test::error_of;
using test::read_file;
using test::TemporaryFolder;

// A file of the data collection beside the repository (or in $NORMA_DATA), or "" when it is not there.
inline std::string shared_data(const std::string& name) {
  const char* folder = std::getenv("NORMA_DATA");
  const std::filesystem::path root =
      folder != nullptr ? std::filesystem::path(folder) : std::filesystem::path(NORMA_SOURCE_DIR) / "../shared/data";
  const std::filesystem::path path = root / name;
  return std::filesystem::exists(path) ? path.string() : "";
}

}  // namespace norma
