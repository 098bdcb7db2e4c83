#include "norma/core/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "norma/core/error.h"

namespace norma {
namespace {

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

[[noreturn]] void fail_with_errno(std::string_view attempt, const std::string& path) {
  const std::string reason = std::system_category().message(errno);
  fail("cannot {} '{}': {}", attempt, path, reason);
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path.string()) {
  // Without O_NONBLOCK, opening a named pipe would wait for a writer.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.number < 0) fail_with_errno("open", path_);
  struct stat status {};
  if (::fstat(file.number, &status) != 0) fail_with_errno("examine", path_);
  if (!S_ISREG(status.st_mode)) {
    fail("'{}' is {}; expected a regular file", path_,
         S_ISDIR(status.st_mode) ? "a folder" : "a device, pipe or socket");
  }
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;  // nothing to map
  void* const memory = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (memory == MAP_FAILED) fail_with_errno("map", path_);
  data_ = static_cast<const std::byte*>(memory);
}

MappedFile::MappedFile(const std::filesystem::path& path, std::string_view what) : MappedFile(path) {
  if (size_ == 0) fail("'{}' is empty; expected {}", path_, what);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace norma
