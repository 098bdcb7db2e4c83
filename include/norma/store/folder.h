// A folder held open. What lies in it is reached by name from there, and no link inside is ever followed: neither one
// that somebody left nor one that takes a folder's place meanwhile can lead a write or a removal elsewhere.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace norma {

enum class PathKind : std::uint8_t { nothing, file, folder, link, other };

// What a path leads to, through links. Throws Error where that cannot be known: without permission, in a loop of links,
// for a name that is too long.
PathKind kind_of(const std::filesystem::path& path);

class Folder {
 public:
  // The path itself may lead through links, as its user made them. Throws Error when there is no folder.
  explicit Folder(const std::filesystem::path& path);
  // Makes it first, with those above it, where it is missing; it is on disk when this returns.
  static Folder make(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }  // as it was given, for messages and readers
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

  PathKind kind(const std::string& name) const;  // of the entry itself
  bool has_file(const std::string& name) const { return kind(name) == PathKind::file; }
  bool has_folder(const std::string& name) const { return kind(name) == PathKind::folder; }
  std::vector<std::string> names() const;  // sorted

  // A folder inside; throws Error for a link or anything else.
  Folder sub(const std::string& name) const;
  Folder make_sub(const std::string& name) const;

  // A descriptor that the caller closes, of a regular file; -1 with errno set when the system refuses. Throws Error
  // for a link and for anything that is no file.
  int open(const std::string& name, int flags) const;
  // The whole file; throws Error when it is missing.
  std::string read(const std::string& name) const;

  // A file, or a link itself. True when there was one; throws Error for anything that cannot be removed.
  bool remove(const std::string& name) const;
  bool remove_if_empty(const std::string& name) const;  // a folder inside; false when something is left in it
  // Returns 0 or an errno.
  int rename(const std::string& from, const std::string& to) const;

  void sync() const;  // brings its entries to disk

 private:
  Folder(std::filesystem::path path, int descriptor);
  int descriptor() const { return *descriptor_; }

  std::filesystem::path path_;
  std::shared_ptr<const int> descriptor_;  // closed with the last copy
};

}  // namespace norma
