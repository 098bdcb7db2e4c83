#include "data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "norma/core/error.h"

namespace norma {
namespace {

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) close(number);
  }
};

}  // namespace

MappedFile::MappedFile(const std::string& path, std::string_view what) : path_(path) {
  if (path.empty()) fail("no file was given for {}; set data.path", what);
  // Non-blocking, because opening a pipe would otherwise wait for its writer.
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.number < 0) fail("cannot open '{}' as {}: {}", path, what, std::strerror(errno));
  struct stat status {};
  if (fstat(file.number, &status) != 0) fail("cannot read '{}' as {}: {}", path, what, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) {
    fail("'{}' is {}; expected {} in a regular file", path, S_ISDIR(status.st_mode) ? "a folder" : "not a file", what);
  }
  if (status.st_size == 0) fail("'{}' is empty; expected {}", path, what);
  size_ = static_cast<std::size_t>(status.st_size);
  data_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (data_ == MAP_FAILED) fail("cannot map '{}' ({} bytes): {}", path, size_, std::strerror(errno));
}

MappedFile::~MappedFile() { munmap(data_, size_); }

}  // namespace norma
