// A file as read-only memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace norma {

class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);  // throws Error; an empty file is an empty span
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// A small text file, such as a configuration; throws Error above 64 MiB.
std::string read_text(const std::filesystem::path& path);

}  // namespace norma
