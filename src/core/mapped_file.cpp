#include "norma/core/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <system_error>

#include "norma/core/error.h"
#include "norma/core/mapped_ranges.h"

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

// Mapped files that a handler of signals can look up. One for which there is no room is not found.
struct MappedRange {
  std::atomic<const std::byte*> begin = nullptr;  // set last, cleared first; `taken` keeps the place meanwhile
  std::atomic<bool> taken = false;
  std::size_t size = 0;
  const char* path = nullptr;
};
std::array<MappedRange, 256> mapped_ranges;

void add_range(const std::byte* begin, std::size_t size, const char* path) {
  for (MappedRange& range : mapped_ranges) {
    if (range.taken.exchange(true, std::memory_order_acquire)) continue;
    range.size = size;
    range.path = path;
    range.begin.store(begin, std::memory_order_release);
    return;
  }
}

void remove_range(const std::byte* begin) {
  for (MappedRange& range : mapped_ranges) {
    if (range.begin.load(std::memory_order_relaxed) != begin) continue;
    range.begin.store(nullptr, std::memory_order_release);
    range.taken.store(false, std::memory_order_release);
    return;
  }
}

}  // namespace

const char* mapped_path_at(const void* address) noexcept {
  constexpr std::size_t kPage = 4096;  // the last page of a file is mapped as a whole
  for (const MappedRange& range : mapped_ranges) {
    const std::byte* const begin = range.begin.load(std::memory_order_acquire);
    if (begin != nullptr && address >= begin && address < begin + (range.size + kPage - 1) / kPage * kPage)
      return range.path;
  }
  return nullptr;
}

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path.string()) {
  const Descriptor file(path);
  size_ = file.size_of_regular_file(path);
  if (size_ == 0) return;  // nothing to map
  void* const memory = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (memory == MAP_FAILED) fail_with_errno("map", path, errno);
  data_ = static_cast<const std::byte*>(memory);
  add_range(data_, size_, path_.c_str());
}

MappedFile::MappedFile(const std::filesystem::path& path, std::string_view what) : MappedFile(path) {
  if (size_ == 0) fail("'{}' is empty; expected {}", path_, what);
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  remove_range(data_);
  ::munmap(const_cast<std::byte*>(data_), size_);
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
