// Small files of a sweep: as text, and as JSON with a checksum of the rest under "checksum".
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "core/json.h"
#include "norma/core/error.h"
#include "norma/store/file_fingerprint.h"

namespace norma {

inline std::string read_small_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail("cannot read '{}'", path.string());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::string with_checksum(nlohmann::json object) {
  object["checksum"] = hash_text(object.dump());
  return object.dump(2) + "\n";
}

// Throws Error when the text is no object or not what was written. Files of earlier versions have no checksum; they are
// known by having no key but `members`, `from` and `until`.
inline nlohmann::json without_checksum(const std::string& text, const std::filesystem::path& path) {
  nlohmann::json object = parse_json(text);
  if (!object.is_object()) fail("'{}' is damaged", path.string());
  const nlohmann::json sum = object.value("checksum", nlohmann::json());
  object.erase("checksum");
  bool earlier = sum.is_null();
  for (const auto& [key, value] : object.items())
    earlier = earlier && (key == "members" || key == "from" || key == "until");
  if (!earlier && sum != hash_text(object.dump())) fail("'{}' is damaged: it is not what was written", path.string());
  return object;
}

}  // namespace norma
