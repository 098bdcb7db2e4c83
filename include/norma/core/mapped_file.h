// A file as read-only memory, or as text. The mapping lives as long as the object; the file must not shrink meanwhile.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace norma {

class MappedFile {
 public:
  // Throws Error when there is no readable regular file at `path`. An empty file is an empty span.
  explicit MappedFile(const std::filesystem::path& path);
  // The same, and the file must not be empty; `what` names its use in the message.
  MappedFile(const std::filesystem::path& path, std::string_view what);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const std::string& path() const { return path_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// A text file of bounded size, such as a configuration. Throws Error when it is larger.
std::string read_text(const std::filesystem::path& path, std::size_t max_bytes = std::size_t{64} << 20);

}  // namespace norma
