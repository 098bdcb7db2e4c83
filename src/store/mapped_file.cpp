#include "store/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "store/file_error.h"

namespace norma {

MappedFile::MappedFile(const std::filesystem::path& path) {
  // Without O_NONBLOCK, opening a named pipe would wait for a writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) fail_with_errno("open", path, errno);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) {
    const int error = errno;
    ::close(descriptor);
    fail_with_errno("examine", path, error);
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(descriptor);
    fail("cannot read '{}': it is {}, not a regular file", path.string(),
         S_ISDIR(status.st_mode) ? "a directory" : "a device, pipe or socket");
  }
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) {  // nothing to map
    ::close(descriptor);
    return;
  }
  void* const memory = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
  const int error = errno;
  ::close(descriptor);
  if (memory == MAP_FAILED) fail_with_errno("map", path, error);
  data_ = static_cast<const std::byte*>(memory);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

std::string read_text(const std::filesystem::path& path) {
  constexpr std::size_t kMaxText = std::size_t{64} << 20;
  const MappedFile file(path);
  if (file.bytes().size() > kMaxText)
    fail("'{}' has {} bytes; a text file of a run has at most {}", path.string(), file.bytes().size(), kMaxText);
  return std::string(file.text());
}

}  // namespace norma
