// What a file held at some time, in a few bytes: enough to notice that it holds something else now.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace norma {

// Files up to this size are hashed whole. Of larger ones the hash takes kSampledBlocks blocks of kSampledBytes, evenly
// spread from the first byte to the last, so that a corpus of terabytes costs no more than one of a gigabyte.
inline constexpr std::uint64_t kWholeFileBytes = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kSampledBlocks = 4096, kSampledBytes = std::uint64_t{1} << 16;

struct FileFingerprint {
  std::uint64_t bytes = 0;
  std::int64_t modified = 0;  // nanoseconds since 1970
  std::string hash;           // "xxh64:<16 digits>", or "xxh64-sampled:<16 digits>" of a large file

  // Of the same content as far as it is hashed; a file that was only touched or copied is the same.
  bool same_content(const FileFingerprint& other) const { return bytes == other.bytes && hash == other.hash; }
  bool is_sampled() const { return hash.starts_with("xxh64-sampled:"); }
};

// Throws Error when there is no readable regular file. `whole_bytes` for tests.
FileFingerprint fingerprint_file(const std::filesystem::path& path, std::uint64_t whole_bytes = kWholeFileBytes);

// Of the names and the contents of all files in a folder and the folders in it, those whose names begin with a dot left
// out; `modified` is that of the newest. Throws Error where one cannot be read.
FileFingerprint fingerprint_folder(const std::filesystem::path& path);

std::string hash_text(std::string_view bytes);  // "xxh64:<16 digits>"

}  // namespace norma
