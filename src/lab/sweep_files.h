// Small files of a sweep as text.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "norma/core/error.h"

namespace norma {

inline std::string read_small_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail("cannot read '{}'", path.string());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace norma
