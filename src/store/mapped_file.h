// A file as read-only memory, or as text.
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

constexpr std::size_t kMaxText = std::size_t{64} << 20;

// A copy of the file: for one that another process may shorten meanwhile, which a mapping would not survive. Throws
// Error above `max_bytes`.
std::string read_text(const std::filesystem::path& path, std::size_t max_bytes = kMaxText);

}  // namespace norma
