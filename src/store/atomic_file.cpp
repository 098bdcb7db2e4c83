#include "norma/store/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "store/file_error.h"

namespace norma {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporarySuffix = ".norma-tmp";

std::string temporary_name(const std::string& name) {
  static std::atomic<unsigned> counter = 0;
  return fmt::format(".{}.{}-{}{}", name, ::getpid(), counter++, kTemporarySuffix);
}

Folder folder_around(const fs::path& path) {
  if (!path.has_filename()) fail("cannot write '{}': this is not a file name", path.string());
  try {
    return Folder(path.parent_path());
  } catch (const Error& error) {
    fail("cannot write '{}': {}", path.string(), error.what());
  }
}

}  // namespace

AtomicFile::AtomicFile(const fs::path& path) : AtomicFile(folder_around(path), path.filename().string()) {}

AtomicFile::AtomicFile(Folder folder, std::string name)
    : folder_(std::move(folder)), path_(folder_ / name), name_(std::move(name)) {
  // A process id comes back, always so in a container, and the temporary of a killed process may carry it.
  constexpr int kAttempts = 1000;
  for (int attempt = 0; descriptor_ < 0 && attempt < kAttempts; ++attempt) {
    temporary_ = temporary_name(name_);
    descriptor_ = folder_.open(temporary_, O_WRONLY | O_CREAT | O_EXCL);
    if (descriptor_ < 0 && errno != EEXIST && errno != EINTR) break;
  }
  if (descriptor_ < 0) {
    const int error = errno;
    fail("cannot write '{}': a temporary file could not be created in '{}': {}", path_.string(),
         folder_.path().empty() ? "." : folder_.path().string(), std::system_category().message(error));
  }
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : folder_(std::move(other.folder_)),
      path_(std::move(other.path_)),
      name_(std::move(other.name_)),
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
  if (::close(std::exchange(descriptor_, -1)) != 0) {
    const int error = errno;
    folder_.remove(temporary_);
    fail_with_errno("write", path_, error);
  }
  if (const int error = folder_.rename(temporary_, name_)) {
    folder_.remove(temporary_);
    fail_with_errno("replace", path_, error);
  }
  folder_.sync();
}

void AtomicFile::fail_and_discard(std::string_view attempt, int error) {
  const std::uint64_t written = bytes_written_;
  discard();
  fail("cannot {} '{}' after {} bytes: {}", attempt, path_.string(), written, std::system_category().message(error));
}

void AtomicFile::discard() noexcept {
  if (descriptor_ < 0) return;
  ::close(std::exchange(descriptor_, -1));
  try {
    folder_.remove(temporary_);
  } catch (const Error&) {  // the next who writes here removes it
  }
}

void write_atomically(const fs::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

void write_atomically(const Folder& folder, const std::string& name, std::string_view text) {
  AtomicFile file(folder, name);
  file.write(text);
  file.commit();
}

bool is_stale_temporary(std::string_view name) {
  if (!name.starts_with('.') || !name.ends_with(kTemporarySuffix)) return false;
  name.remove_suffix(kTemporarySuffix.size());
  const std::string_view owner = name.substr(name.rfind('.') + 1);  // "<process>-<count>"
  const std::size_t dash = owner.find('-');
  const auto is_number = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  return dash != std::string_view::npos && is_number(owner.substr(0, dash)) && is_number(owner.substr(dash + 1));
}

int remove_stale_temporaries(const Folder& folder) {
  int removed = 0;
  for (const std::string& name : folder.names()) {
    if (is_stale_temporary(name) && folder.has_file(name) && folder.remove(name)) ++removed;
  }
  return removed;
}

}  // namespace norma
