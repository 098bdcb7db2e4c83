// Files in a zip archive (NPZ is one), stored or deflated.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace norma {

class Archive {
 public:
  // `bytes` must outlive it. Throws Error, naming `path`, where they are no archive or a damaged one.
  Archive(std::string_view bytes, std::string path);

  const std::map<std::string, std::string_view>& entries() const { return entries_; }
  // What the entry unpacks to; its checksum must be right.
  std::string unpack(const std::string& name) const;

 private:
  std::string_view bytes_;
  std::string path_;
  std::map<std::string, std::string_view> entries_;  // records of the directory at the archive's end, by name
};

bool is_archive(std::string_view bytes);

}  // namespace norma
