// What a file of bytes is, by its first ones, and how it becomes UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace norma {

enum class Packing { none, gzip, other };
// `name` of what is neither text nor gzip: "zstd", "a zip archive", ...
Packing packing_of(std::string_view bytes, std::string_view& name);

// The first `most` bytes that it unpacks to; all of them unless `most` is given. Throws Error naming `path`.
std::string unpack_gzip(std::string_view bytes, const std::string& path, std::size_t most = SIZE_MAX);

enum class Utf16 { none, little, big };
// By a byte order mark, or by zeros in every other byte.
Utf16 utf16_of(std::string_view bytes);
// Throws Error naming the first byte that is no character.
std::string utf8_of_utf16(std::string_view bytes, Utf16 order, const std::string& path);

}  // namespace norma
