#include "norma/store/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>

#include "store/directory.h"
#include "store/file_error.h"

namespace norma {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporarySuffix = ".norma-tmp";

fs::path temporary_name(const fs::path& file_name) {
  static std::atomic<unsigned> counter = 0;
  return fmt::format(".{}.{}-{}{}", file_name.string(), ::getpid(), counter++, kTemporarySuffix);
}

}  // namespace

AtomicFile::AtomicFile(fs::path path)
    : path_(std::move(path)), directory_(path_.has_parent_path() ? path_.parent_path() : fs::path(".")) {
  if (!path_.has_filename()) fail("cannot write '{}': this is no file name", path_.string());
  // A process id comes back, always so in a container, and the temporary of a killed process may carry it.
  constexpr int kAttempts = 1000;
  for (int attempt = 0; descriptor_ < 0 && attempt < kAttempts; ++attempt) {
    temporary_ = directory_ / temporary_name(path_.filename());
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && errno != EEXIST && errno != EINTR) break;
  }
  if (descriptor_ < 0) {
    const int error = errno;
    fail("cannot write '{}': a temporary file could not be created in '{}': {}", path_.string(), directory_.string(),
         std::system_category().message(error));
  }
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      directory_(std::move(other.directory_)),
      temporary_(std::move(other.temporary_)),
      bytes_written_(other.bytes_written_),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::write(std::span<const std::byte> bytes) {
  NORMA_ASSERT(descriptor_ >= 0);
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      fail_and_discard("write", errno);
    }
    bytes_written_ += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::rewrite(std::uint64_t offset, std::string_view text) {
  NORMA_ASSERT(descriptor_ >= 0 && offset + text.size() <= bytes_written_);
  while (!text.empty()) {
    const ssize_t written = ::pwrite(descriptor_, text.data(), text.size(), static_cast<off_t>(offset));
    if (written < 0) {
      if (errno == EINTR) continue;
      fail_and_discard("write", errno);
    }
    offset += static_cast<std::uint64_t>(written);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  NORMA_ASSERT(descriptor_ >= 0);
  if (::fsync(descriptor_) != 0) fail_and_discard("bring to disk", errno);
  const int closed = ::close(std::exchange(descriptor_, -1));
  if (closed != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary_.c_str());
    fail_with_errno(closed != 0 ? "write" : "replace", path_, error);
  }
  if (const int error = sync_directory(directory_)) fail_with_errno("bring to disk the directory", directory_, error);
}

void AtomicFile::fail_and_discard(std::string_view attempt, int error) {
  const std::uint64_t written = bytes_written_;
  discard();
  fail("cannot {} '{}' after {} bytes: {}", attempt, path_.string(), written, std::system_category().message(error));
}

void AtomicFile::discard() noexcept {
  if (descriptor_ < 0) return;
  ::close(std::exchange(descriptor_, -1));
  ::unlink(temporary_.c_str());
}

void write_atomically(const fs::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

bool is_stale_temporary(std::string_view file_name) {
  return file_name.starts_with('.') && file_name.ends_with(kTemporarySuffix);
}

int remove_stale_temporaries(const fs::path& directory) {
  int removed = 0;
  for (const std::string& name : names_in(directory)) {
    if (!is_stale_temporary(name)) continue;
    const fs::path path = directory / name;
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail_with_errno("remove the leftover", path, errno);
    ++removed;
  }
  return removed;
}

void make_directory(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) fail_with_errno("create the directory", path, error.value());
  // The loss of power must not take the directory from around its files.
  const std::filesystem::path parent = std::filesystem::absolute(path / ".").parent_path().parent_path();
  if (const int failed = sync_directory(parent)) fail_with_errno("bring to disk the directory", parent, failed);
}

}  // namespace norma
