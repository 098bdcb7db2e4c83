#include "data/images/arrays.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "norma/core/error.h"

namespace norma {
namespace {

std::int64_t elements_of(const std::string& path, const std::vector<std::int64_t>& shape) {
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) {
    if (size < 1 || size > kMostPixels / elements)
      fail("'{}' says that it is [{}]; expected sizes of at least 1 and at most {} numbers", path,
           fmt::join(shape, ", "), kMostPixels);
    elements *= size;
  }
  return elements;
}

void check_room(const std::string& path, std::size_t header, std::int64_t bytes, std::size_t size) {
  if (size < header || size - header != static_cast<std::size_t>(bytes))
    fail("'{}' has {} bytes; its header says {} and then {}", path, size, header, bytes);
}

std::uint8_t byte_at(std::string_view bytes, std::size_t at) { return static_cast<std::uint8_t>(bytes[at]); }

std::vector<std::uint8_t> bytes_behind(std::string_view bytes, std::size_t header) {
  const auto* from = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return {from + header, from + bytes.size()};
}

std::string_view after(std::string_view text, std::string_view key, const std::string& path) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) fail("'{}' has no {} in its NPY header", path, key);
  return text.substr(at + key.size());
}

template <typename T>
std::vector<float> converted_numbers(const char* from, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    values[i] = static_cast<float>(value);
  }
  return values;
}

std::vector<std::int64_t> npy_shape(std::string_view text, const std::string& path) {
  std::vector<std::int64_t> shape;
  text = text.substr(0, text.find(')'));
  std::int64_t size = -1;  // none is being read
  for (const char c : text) {
    if (c >= '0' && c <= '9' && size < kMostPixels) {
      size = std::max<std::int64_t>(size, 0) * 10 + (c - '0');
    } else if (size >= 0) {
      shape.push_back(size);
      size = -1;
    }
  }
  if (size >= 0) shape.push_back(size);
  if (shape.empty() || shape.size() > 4) fail("'{}' is an NPY array of {} axes; expected 1 to 4", path, shape.size());
  return shape;
}

// "\x93NUMPY", version, length of the header (two bytes in version 1, four later), the header.
std::size_t npy_header(std::string_view bytes, const std::string& path, std::size_t& fixed) {
  fixed = 10;
  if (bytes.size() < fixed || byte_at(bytes, 6) < 1 || byte_at(bytes, 6) > 3)
    fail("'{}' is not an NPY file of version 1 to 3", path);
  std::size_t length = byte_at(bytes, 8) + 256u * byte_at(bytes, 9);
  if (byte_at(bytes, 6) > 1) {
    fixed = 12;
    if (bytes.size() < fixed) fail("'{}' ends within its NPY header", path);
    length += 65536u * byte_at(bytes, 10) + 16777216u * byte_at(bytes, 11);
  }
  if (bytes.size() - fixed < length) fail("'{}' ends within its NPY header", path);
  return fixed + length;
}

}  // namespace

bool is_npy(std::string_view bytes) { return bytes.starts_with("\x93NUMPY"); }

bool is_idx(std::string_view bytes) {
  return bytes.size() >= 4 && bytes[0] == 0 && bytes[1] == 0 && bytes[2] == 8 && bytes[3] >= 1 && bytes[3] <= 4;
}

// Big-endian: 0, 0, type, number of axes, then the axes.
StoredArray read_idx(std::string_view bytes, const std::string& path) {
  const std::size_t axes = byte_at(bytes, 3), header = 4 + 4 * axes;
  if (bytes.size() < header) fail("'{}' is an IDX file of {} axes and {} bytes; it is cut", path, axes, bytes.size());
  StoredArray array;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    std::int64_t size = 0;
    for (std::size_t i = 0; i < 4; ++i) size = size * 256 + byte_at(bytes, 4 + 4 * axis + i);
    array.shape.push_back(size);
  }
  check_room(path, header, elements_of(path, array.shape), bytes.size());
  array.values = bytes_behind(bytes, header);
  return array;
}

StoredArray read_npy(std::string_view bytes, const std::string& path) {
  static_assert(std::endian::native == std::endian::little);
  std::size_t fixed = 0;
  const std::size_t header = npy_header(bytes, path, fixed);
  const std::string_view text = bytes.substr(fixed, header - fixed);
  if (after(text, "'fortran_order': ", path).starts_with("True"))
    fail("'{}' is in Fortran order; expected C order", path);
  std::string_view type = after(text, "'descr': '", path);
  type = type.substr(0, type.find('\''));
  StoredArray array{.shape = npy_shape(after(text, "'shape': (", path), path), .values = {}};
  const std::int64_t count = elements_of(path, array.shape);
  const auto read = [&]<typename T>(T) {
    check_room(path, header, count * static_cast<std::int64_t>(sizeof(T)), bytes.size());
    array.values = converted_numbers<T>(bytes.data() + header, count);
  };
  if (type == "|u1") {
    check_room(path, header, count, bytes.size());
    array.values = bytes_behind(bytes, header);
  } else if (type == "<f4") {
    read(float{});
  } else if (type == "<f8") {
    read(double{});
  } else if (type == "<i4") {
    read(std::int32_t{});
  } else if (type == "<i8") {
    read(std::int64_t{});
  } else {
    fail("'{}' is an NPY array of type '{}'; expected |u1, <i4, <i8, <f4 or <f8", path, type);
  }
  return array;
}

}  // namespace norma
