// Files that a test writes and that vanish with it, and where real data lies when there is any.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "norma/core/error.h"

namespace norma {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "norma-data-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path(const std::string& name = "") const { return (path_ / name).string(); }
  std::string write(const std::string& name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return path(name);
  }

 private:
  std::filesystem::path path_;
};

// A file of the data collection beside the repository (or in $NORMA_DATA), or "" when it is not there.
inline std::string shared_data(const std::string& name) {
  const char* folder = std::getenv("NORMA_DATA");
  const std::filesystem::path root =
      folder != nullptr ? std::filesystem::path(folder) : std::filesystem::path(NORMA_SOURCE_DIR) / "../shared/data";
  const std::filesystem::path path = root / name;
  return std::filesystem::exists(path) ? path.string() : "";
}

// The message of the Error that `action` throws; "" when it throws none.
template <typename Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace norma
