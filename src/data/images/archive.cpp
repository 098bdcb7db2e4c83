#include "data/images/archive.h"

#include <zlib.h>

#include <cstdint>

#include "data/images/arrays.h"
#include "norma/core/error.h"

namespace norma {
namespace {

constexpr std::size_t kEndBytes = 22, kRecordBytes = 46, kLocalBytes = 30, kMostComment = 65535;
constexpr std::string_view kEndMark("PK\5\6", 4), kRecordMark("PK\1\2", 4), kLocalMark("PK\3\4", 4);
constexpr std::uint64_t kElsewhere = 0xffffffff;  // the number is in a zip64 record

std::uint64_t little(std::string_view bytes, std::size_t at, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = count; i > 0; --i) value = value << 8 | static_cast<std::uint8_t>(bytes[at + i - 1]);
  return value;
}

// Raw deflate.
std::string inflated(std::string_view packed, std::size_t size, const std::string& name) {
  std::string text(size, '\0');
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) fail("'{}': zlib cannot be used", name);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  const int code = inflate(&stream, Z_FINISH);
  const bool whole = code == Z_STREAM_END && stream.total_out == size;
  inflateEnd(&stream);
  if (!whole) fail("'{}' is damaged: it does not unpack to the {} bytes that it says", name, size);
  return text;
}

}  // namespace

bool is_archive(std::string_view bytes) { return bytes.starts_with(kLocalMark) || bytes.starts_with(kEndMark); }

Archive::Archive(std::string_view bytes, std::string path) : bytes_(bytes), path_(std::move(path)) {
  const std::size_t from = bytes.size() > kEndBytes + kMostComment ? bytes.size() - kEndBytes - kMostComment : 0;
  const std::size_t end = bytes.rfind(kEndMark);
  if (end == std::string_view::npos || end < from || bytes.size() - end < kEndBytes)
    fail("'{}' is cut or damaged: a zip archive without the directory at its end", path_);
  const std::uint64_t count = little(bytes, end + 10, 2), begin = little(bytes, end + 16, 4);
  if (begin == kElsewhere || count == 0xffff) fail("'{}' is a zip archive of over 4 GiB, which is not read", path_);
  std::size_t at = begin;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (at > end || end - at < kRecordBytes || !bytes.substr(at).starts_with(kRecordMark))
      fail("'{}' is damaged: record {} of its directory is not where it should be", path_, i);
    const std::size_t name = little(bytes, at + 28, 2);
    const std::size_t length = kRecordBytes + name + little(bytes, at + 30, 2) + little(bytes, at + 32, 2);
    if (end - at < length) fail("'{}' is damaged: record {} of its directory is cut", path_, i);
    entries_[std::string(bytes.substr(at + kRecordBytes, name))] = bytes.substr(at, length);
    at += length;
  }
}

std::string Archive::unpack(const std::string& name) const {
  const std::string_view record = entries_.at(name);
  const std::string both = path_ + ": " + name;
  const std::uint64_t method = little(record, 10, 2), checksum = little(record, 16, 4), packed = little(record, 20, 4),
                      size = little(record, 24, 4), local = little(record, 42, 4);
  if ((little(record, 8, 2) & 1) != 0) fail("'{}' is encrypted", both);
  if (packed == kElsewhere || size == kElsewhere || local == kElsewhere)
    fail("'{}' has over 4 GiB, which is not read", both);
  if (local > bytes_.size() || bytes_.size() - local < kLocalBytes || !bytes_.substr(local).starts_with(kLocalMark))
    fail("'{}' is damaged: it is not where the directory says", both);
  const std::size_t begin = local + kLocalBytes + little(bytes_, local + 26, 2) + little(bytes_, local + 28, 2);
  if (begin > bytes_.size() || bytes_.size() - begin < packed) fail("'{}' is cut", both);
  const std::string_view data = bytes_.substr(begin, packed);
  // Deflate packs at most 1032 to 1: a size beyond is a lie, and must not take memory.
  if (method == 8 && size / 1032 > packed + 1)
    fail("'{}' is damaged: {} bytes cannot unpack to {}", both, packed, size);
  if (method == 0 && packed != size) fail("'{}' is damaged: {} bytes are stored as {}", both, size, packed);
  if (method != 0 && method != 8)
    fail("'{}' is packed by method {} of zip; expected 0 (stored) or 8 (deflated)", both, method);
  std::string text = method == 0 ? std::string(data) : inflated(data, size, both);
  if (crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size()) != checksum)
    fail("'{}' is damaged: its checksum is not what it says", both);
  return text;
}

}  // namespace norma
