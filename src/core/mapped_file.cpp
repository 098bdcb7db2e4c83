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

[[noreturn]] void fail_with_errno(std::string_view attempt, const std::filesystem::path& path, int error) {
  fail("cannot {} '{}': {}", attempt, path.string(), std::system_category().message(error));
}

class Descriptor {
 public:
  explicit Descriptor(const std::filesystem::path& path)
      // Without O_NONBLOCK, opening a named pipe would wait for a writer.
      : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (descriptor_ < 0) fail_with_errno("open", path, errno);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(descriptor_); }

  int get() const { return descriptor_; }

  std::size_t size_of_regular_file(const std::filesystem::path& path) const {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) fail_with_errno("examine", path, errno);
    if (!S_ISREG(status.st_mode))
      fail("'{}' is {}; expected a regular file", path.string(),
           S_ISDIR(status.st_mode) ? "a folder" : "a device, pipe or socket");
    return static_cast<std::size_t>(status.st_size);
  }

 private:
  int descriptor_;
};

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path.string()) {
  const Descriptor file(path);
  size_ = file.size_of_regular_file(path);
  if (size_ == 0) return;  // nothing to map
  void* const memory = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (memory == MAP_FAILED) fail_with_errno("map", path, errno);
  data_ = static_cast<const std::byte*>(memory);
}

MappedFile::MappedFile(const std::filesystem::path& path, std::string_view what) : MappedFile(path) {
  if (size_ == 0) fail("'{}' is empty; expected {}", path_, what);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

std::string read_text(const std::filesystem::path& path, std::size_t max_bytes) {
  const Descriptor file(path);
  const std::size_t size = file.size_of_regular_file(path);
  if (size > max_bytes) fail("'{}' has {} bytes; expected at most {}", path.string(), size, max_bytes);
  std::string text(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::read(file.get(), text.data() + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_with_errno("read", path, errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  text.resize(done);
  return text;
}

}  // namespace norma
