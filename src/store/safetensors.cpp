#include "norma/store/safetensors.h"

#include <bit>
#include <cstring>

#include "norma/core/error.h"
#include "norma/core/mapped_file.h"
#include "norma/core/names.h"
#include "store/safetensors_header.h"
#include "store/xxh64.h"

namespace norma {
namespace {

// IEEE half precision: every value has an exact float.
float float_of_half(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu, mantissa = half & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;  // subnormal or zero
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  const std::uint32_t wide = exponent == 0x1fu ? 0xffu : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

template <typename T, typename Convert>
std::vector<float> convert_all(std::span<const std::byte> bytes, Convert convert) {
  std::vector<float> result(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < result.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));  // a tensor of another writer may lie anywhere
    result[i] = convert(value);
  }
  return result;
}

}  // namespace

std::string TensorInfo::str() const { return fmt::format("{}[{}]", name_of(type), fmt::join(shape, ", ")); }

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : path_(path), file_(std::make_shared<MappedFile>(path)) {
  try {
    const std::span<const std::byte> all = file_->bytes();
    if (all.size() < kLengthBytes)
      fail("it has {} bytes; the length of the header alone takes {}", all.size(), kLengthBytes);
    std::uint64_t length = 0;
    std::memcpy(&length, all.data(), kLengthBytes);
    if (length > kMaxHeaderBytes)
      fail("its header would have {} bytes; at most {} are allowed", length, kMaxHeaderBytes);
    if (length > all.size() - kLengthBytes)
      fail("its header would have {} bytes, the file has only {}", length, all.size());
    data_start_ = kLengthBytes + length;
    SafetensorsHeader header = parse_header(file_->text().substr(kLengthBytes, length), all.size() - data_start_);
    tensors_ = std::move(header.tensors);
    metadata_ = std::move(header.metadata);
  } catch (const Error& error) {
    fail("'{}' is no valid safetensors file: {}", path.string(), error.what());
  }
  for (std::size_t i = 0; i < tensors_.size(); ++i) by_name_.emplace(tensors_[i].name, i);
}

const TensorInfo& SafetensorsFile::info(std::string_view name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) {
    std::vector<std::string> names;
    names.reserve(tensors_.size());
    for (const TensorInfo& tensor : tensors_) names.push_back(tensor.name);
    fail("'{}' holds no tensor '{}'{}", path_.string(), name, did_you_mean(name, names));
  }
  return tensors_[found->second];
}

std::span<const std::byte> SafetensorsFile::bytes(std::string_view name) const {
  const TensorInfo& tensor = info(name);
  return file_->bytes().subspan(data_start_ + tensor.begin, tensor.end - tensor.begin);
}

std::span<const std::byte> SafetensorsFile::bytes_for_view(std::string_view name, ElementType type,
                                                           std::size_t alignment) const {
  const TensorInfo& tensor = info(name);
  if (tensor.type != type)
    fail("'{}': tensor '{}' is {}; it was read as {}", path_.string(), name, tensor.str(), name_of(type));
  const std::span<const std::byte> raw = bytes(name);
  if (reinterpret_cast<std::uintptr_t>(raw.data()) % alignment != 0)
    fail("'{}': tensor '{}' lies at byte {}, which is not a multiple of {}; copy its bytes instead", path_.string(),
         name, data_start_ + tensor.begin, alignment);
  return raw;
}

std::vector<float> SafetensorsFile::to_f32(std::string_view name) const {
  const std::span<const std::byte> raw = bytes(name);
  switch (info(name).type) {
    case ElementType::f16: return convert_all<std::uint16_t>(raw, float_of_half);
    case ElementType::bf16: return convert_all<BFloat16>(raw, [](BFloat16 value) { return static_cast<float>(value); });
    case ElementType::f32: return convert_all<float>(raw, [](float value) { return value; });
    case ElementType::f64: return convert_all<double>(raw, [](double value) { return static_cast<float>(value); });
    default: fail("'{}': tensor '{}' is {}; expected F16, BF16, F32 or F64", path_.string(), name, info(name).str());
  }
}

void SafetensorsFile::verify_checksum() const {
  const std::string_view header = file_->text().substr(0, data_start_);
  const std::size_t digits = find_checksum_digits(header);
  const auto stored = metadata_.find(kChecksumKey);
  if (stored == metadata_.end() || digits == std::string_view::npos)
    fail("'{}' carries no checksum under '{}' that norma can read", path_.string(), kChecksumKey);
  const std::string expected(header.substr(digits, kChecksumDigits));
  const std::string blank(kChecksumDigits, '0');
  Xxh64 hash;
  hash.update(file_->bytes().first(digits));
  hash.update(std::as_bytes(std::span(blank)));
  hash.update(file_->bytes().subspan(digits + kChecksumDigits));
  const std::string found = checksum_text(hash.digest());
  if (found != expected || stored->second != std::string(kChecksumPrefix) + expected)
    fail("'{}' is damaged: its checksum is {}, what it holds gives {}", path_.string(), expected, found);
}

}  // namespace norma
