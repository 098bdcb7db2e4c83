// Reads safetensors files: eight bytes of header length, a JSON header, then the tensors without gaps. The file is
// mapped, everything in the header is checked before a tensor can be reached.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "norma/store/element_type.h"

namespace norma {

class MappedFile;

// Key in the metadata under which norma keeps the checksum of its checkpoints.
inline constexpr std::string_view kChecksumKey = "norma.checksum";

// Value text by key; safetensors keeps nothing else.
using Metadata = std::map<std::string, std::string, std::less<>>;

struct TensorInfo {
  std::string name;
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape;   // empty: one element
  std::uint64_t begin = 0, end = 0;  // bytes of the data section

  std::uint64_t elements() const { return (end - begin) / size_of(type); }
  std::string str() const;  // "F32[32, 128]"
};

// A file that another program shortens while it is mapped faults on access. norma's own writers never change a file in
// place: they rename a new one over it, and the old one stays readable here.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);  // throws Error that names the file and what is wrong

  const std::filesystem::path& path() const { return path_; }
  std::span<const TensorInfo> tensors() const { return tensors_; }  // in the order of their bytes
  const Metadata& metadata() const { return metadata_; }

  bool contains(std::string_view name) const { return by_name_.contains(name); }
  const TensorInfo& info(std::string_view name) const;  // throws Error with the nearest name
  std::span<const std::byte> bytes(std::string_view name) const;

  // The tensor in place. Throws Error when it is of another type, or not aligned for T (write order decides that;
  // norma's own files are).
  template <typename T>
  std::span<const T> view(std::string_view name) const {
    const std::span<const std::byte> raw = bytes_for_view(name, element_type_of<T>(), alignof(T));
    return {reinterpret_cast<const T*>(raw.data()), raw.size() / sizeof(T)};
  }

  // The tensor wherever it lies: files of others need not be aligned. Throws Error when it is of another type.
  template <typename T>
  std::vector<T> copy(std::string_view name) const {
    const std::span<const std::byte> raw = bytes_for_view(name, element_type_of<T>(), 1);
    std::vector<T> values(raw.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), raw.data(), raw.size());
    return values;
  }

  // Any floating type, converted: exact from F16, BF16 and F32, rounded from F64.
  std::vector<float> to_f32(std::string_view name) const;

  bool has_checksum() const { return metadata_.contains(kChecksumKey); }
  // Reads the whole file. Throws Error when it has no checksum or when a single bit differs from what was written.
  void verify_checksum() const;

 private:
  std::span<const std::byte> bytes_for_view(std::string_view name, ElementType type, std::size_t alignment) const;

  std::filesystem::path path_;
  std::shared_ptr<const MappedFile> file_;
  std::uint64_t data_start_ = 0;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  Metadata metadata_;
};

}  // namespace norma
