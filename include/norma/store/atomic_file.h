// A file that is written whole or not at all: a crash or a kill at any moment leaves the old file or the new one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "norma/store/folder.h"

namespace norma {

// Writes to a temporary file in the same directory; commit() brings it to disk and renames it over `path`. Without a
// commit, or after an error, the temporary is removed and `path` stays as it was.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);  // throws Error when the directory is missing or not writable
  AtomicFile(Folder folder, std::string name);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  void write(std::span<const std::byte> bytes);  // appends; straight from the caller's memory
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

  // Replaces bytes already written, such as a field whose value is known only at the end.
  void rewrite(std::uint64_t offset, std::string_view text);

  // When it returns, the new file survives the loss of power.
  void commit();

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t bytes_written() const { return bytes_written_; }

 private:
  [[noreturn]] void fail_and_discard(std::string_view attempt, int error);
  void discard() noexcept;

  Folder folder_;
  std::filesystem::path path_;
  std::string name_, temporary_;
  std::uint64_t bytes_written_ = 0;
  int descriptor_ = -1;
};

void write_atomically(const std::filesystem::path& path, std::string_view text);
void write_atomically(const Folder& folder, const std::string& name, std::string_view text);

// True for the name of a temporary that an AtomicFile left behind when its process was killed.
bool is_stale_temporary(std::string_view file_name);

// Removes such files from a directory that no other process is writing to; returns how many there were.
int remove_stale_temporaries(const Folder& folder);

}  // namespace norma
