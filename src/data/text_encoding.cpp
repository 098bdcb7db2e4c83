#include "data/text_encoding.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "data/utf8.h"
#include "norma/core/error.h"

namespace norma {
namespace {

struct PackedKind {
  std::string_view begins, name;
};

using namespace std::string_view_literals;

constexpr PackedKind kPacked[] = {
    {"\x28\xB5\x2F\xFD"sv, "compressed with zstd (unzstd FILE unpacks it)"},
    {"\xFD\x37\x7A\x58\x5A\x00"sv, "compressed with xz (unxz FILE unpacks it)"},
    {"BZh"sv, "compressed with bzip2 (bunzip2 FILE unpacks it)"},
    {"PK\x03\x04"sv, "a zip archive or an office document"},
    {"PAR1"sv, "an Apache Parquet table"},
    {"ARROW1"sv, "an Apache Arrow table"},
    {"%PDF-"sv, "a PDF document"},
    {"\x89HDF"sv, "an HDF5 file"},
    {"\x93NUMPY"sv, "a NumPy array"},
};

class Inflater {
 public:
  Inflater(std::string_view bytes, const std::string& path) : path_(path) {
    if (inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK) throw std::bad_alloc();
    rest_ = bytes;
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Appends a piece; false at the end.
  bool next(std::string& text) {
    while (stream_.avail_in == 0 && !rest_.empty()) feed();
    std::array<char, 1 << 16> piece;
    stream_.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream_.avail_out = static_cast<uInt>(piece.size());
    const int status = inflate(&stream_, Z_NO_FLUSH);
    text.append(piece.data(), piece.size() - stream_.avail_out);
    if (status == Z_STREAM_END) {  // files may be packed one behind another
      if (stream_.avail_in == 0 && rest_.empty()) return false;
      inflateReset(&stream_);
      return true;
    }
    if (status == Z_BUF_ERROR && stream_.avail_in == 0 && rest_.empty())
      fail("'{}' ends in the middle of its gzip data", path_);
    if (status != Z_OK && status != Z_BUF_ERROR)
      fail("'{}' is damaged: its gzip data cannot be unpacked{}{}", path_, stream_.msg == nullptr ? "" : ": ",
           stream_.msg == nullptr ? "" : stream_.msg);
    if (status == Z_OK && stream_.avail_in == 0 && rest_.empty() && stream_.avail_out > 0)
      fail("'{}' ends in the middle of its gzip data", path_);
    return true;
  }

 private:
  void feed() {
    const std::size_t count = std::min<std::size_t>(rest_.size(), std::numeric_limits<uInt>::max());
    // The library takes no constant bytes, and changes none.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest_.data()));
    stream_.avail_in = static_cast<uInt>(count);
    rest_.remove_prefix(count);
  }

  const std::string& path_;
  std::string_view rest_;
  z_stream stream_{};
};

}  // namespace

Packing packing_of(std::string_view bytes, std::string_view& name) {
  if (bytes.starts_with("\x1F\x8B"sv)) return Packing::gzip;
  for (const PackedKind& kind : kPacked) {
    if (!bytes.starts_with(kind.begins)) continue;
    name = kind.name;
    return Packing::other;
  }
  return Packing::none;
}

std::string unpack_gzip(std::string_view bytes, const std::string& path, std::size_t most) {
  std::string text;
  Inflater inflater(bytes, path);
  while (text.size() < most && inflater.next(text)) {
  }
  return text;
}

Utf16 utf16_of(std::string_view bytes) {
  if (bytes.starts_with("\xFF\xFE"sv)) return Utf16::little;
  if (bytes.starts_with("\xFE\xFF"sv)) return Utf16::big;
  constexpr std::size_t kSample = 512;
  std::array<std::size_t, 2> zeros{};
  const std::size_t sample = std::min(bytes.size(), kSample) / 2 * 2;
  for (std::size_t i = 0; i < sample; ++i) zeros[i % 2] += bytes[i] == '\0';
  // Letters of the Latin alphabets have a zero beside them; token ids of two bytes have no text's spaces and ends of
  // lines.
  const auto is_text = [&](std::size_t letter) {
    std::size_t readable = 0;
    for (std::size_t i = letter; i < sample; i += 2)
      readable += bytes[i] == '\n' || bytes[i] == '\r' || bytes[i] == '\t' || (bytes[i] >= ' ' && bytes[i] <= '~');
    return 2 * readable > sample * 9 / 10;
  };
  if (sample < 8) return Utf16::none;
  if (zeros[0] == 0 && 2 * zeros[1] > sample * 9 / 10 && is_text(0)) return Utf16::little;
  if (zeros[1] == 0 && 2 * zeros[0] > sample * 9 / 10 && is_text(1)) return Utf16::big;
  return Utf16::none;
}

std::string utf8_of_utf16(std::string_view bytes, Utf16 order, const std::string& path) {
  std::string text;
  const auto unit = [&](std::size_t at) {
    const auto first = static_cast<unsigned char>(bytes[at]), second = static_cast<unsigned char>(bytes[at + 1]);
    return static_cast<char32_t>(order == Utf16::little ? first | second << 8 : first << 8 | second);
  };
  if (bytes.size() % 2 != 0) fail("'{}' is UTF-16 with {} bytes; expected an even number of them", path, bytes.size());
  for (std::size_t at = 0; at < bytes.size(); at += 2) {
    char32_t character = unit(at);
    if (at == 0 && character == 0xFEFF) continue;
    const bool high = character >= 0xD800 && character < 0xDC00, low = character >= 0xDC00 && character < 0xE000;
    const char32_t next = high && at + 3 < bytes.size() ? unit(at + 2) : 0;
    if (low || (high && (next < 0xDC00 || next >= 0xE000)))
      fail("'{}' is UTF-16, but byte {} begins no character", path, at);
    if (high) {
      character = 0x10000 + ((character - 0xD800) << 10) + (next - 0xDC00);
      at += 2;
    }
    append_utf8(character, text);
  }
  return text;
}

}  // namespace norma
