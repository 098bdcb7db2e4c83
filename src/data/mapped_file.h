// A file mapped for reading. The mapping lives as long as the object; the file must not shrink meanwhile.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace norma {

class MappedFile {
 public:
  // Throws Error when there is no readable, non-empty, regular file at `path`. `what` names its use in the message.
  MappedFile(const std::string& path, std::string_view what);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  const std::byte* data() const { return static_cast<const std::byte*>(data_); }
  std::size_t size() const { return size_; }
  std::string_view text() const { return {static_cast<const char*>(data_), size_}; }

 private:
  std::string path_;
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace norma
