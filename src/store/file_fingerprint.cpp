#include "norma/store/file_fingerprint.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "store/file_error.h"
#include "store/safetensors_header.h"
#include "store/xxh64.h"

namespace norma {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 20;

// Read, not mapped: a file that shrinks meanwhile is an error rather than a fault.
class FingerprintReader {
 public:
  explicit FingerprintReader(const std::filesystem::path& path)
      : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)), buffer_(kReadBytes) {
    if (descriptor_ < 0) fail_with_errno("open", path, errno);
  }
  FingerprintReader(const FingerprintReader&) = delete;
  ~FingerprintReader() { ::close(descriptor_); }

  struct stat status() const {
    struct stat found {};
    if (::fstat(descriptor_, &found) != 0) fail_with_errno("examine", path_, errno);
    if (!S_ISREG(found.st_mode)) fail("'{}' is no regular file", path_.string());
    return found;
  }

  void hash(std::uint64_t begin, std::uint64_t bytes, Xxh64& hash) {
    while (bytes > 0) {
      const ssize_t got = ::pread(descriptor_, buffer_.data(), std::min<std::uint64_t>(bytes, buffer_.size()),
                                  static_cast<off_t>(begin));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail_with_errno("read", path_, errno);
      if (got == 0) fail("'{}' became shorter while it was read", path_.string());
      hash.update(std::span(buffer_).first(static_cast<std::size_t>(got)));
      begin += static_cast<std::uint64_t>(got);
      bytes -= static_cast<std::uint64_t>(got);
    }
  }

 private:
  std::filesystem::path path_;
  int descriptor_;
  std::vector<std::byte> buffer_;
};

}  // namespace

FileFingerprint fingerprint_file(const std::filesystem::path& path, std::uint64_t whole_bytes) {
  FingerprintReader file(path);
  const struct stat status = file.status();
  FileFingerprint print{.bytes = static_cast<std::uint64_t>(status.st_size),
                        .modified = status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec,
                        .hash = {}};
  Xxh64 hash;
  const bool whole = print.bytes <= std::max(whole_bytes, kSampledBlocks * kSampledBytes);
  if (whole) {
    file.hash(0, print.bytes, hash);
  } else {
    const std::uint64_t last = print.bytes - kSampledBytes, stride = last / (kSampledBlocks - 1);
    for (std::uint64_t block = 0; block + 1 < kSampledBlocks; ++block) file.hash(block * stride, kSampledBytes, hash);
    file.hash(last, kSampledBytes, hash);
  }
  print.hash = (whole ? "xxh64:" : "xxh64-sampled:") + checksum_text(hash.digest());
  return print;
}

FileFingerprint fingerprint_folder(const std::filesystem::path& path) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(path, error);
  for (; !error && entry != std::filesystem::end(entry); entry.increment(error)) {
    if (entry->path().filename().string().starts_with('.')) {
      if (entry->is_directory()) entry.disable_recursion_pending();
    } else if (entry->is_regular_file()) {
      files.push_back(entry->path());
    }
  }
  if (error) fail("cannot read the folder '{}': {}", path.string(), error.message());
  std::sort(files.begin(), files.end());
  FileFingerprint all;
  std::string lines;
  for (const std::filesystem::path& file : files) {
    const FileFingerprint one = fingerprint_file(file);
    all.bytes += one.bytes;
    all.modified = std::max(all.modified, one.modified);
    lines += fmt::format("{} {} {}\n", one.hash, one.bytes, std::filesystem::relative(file, path).string());
  }
  all.hash = hash_text(lines);
  return all;
}

std::string hash_text(std::string_view bytes) {
  Xxh64 hash;
  hash.update(std::as_bytes(std::span(bytes)));
  return "xxh64:" + checksum_text(hash.digest());
}

}  // namespace norma
