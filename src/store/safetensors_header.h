// The JSON header of a safetensors file: parsed, checked, written.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "norma/store/safetensors.h"
#include "norma/store/safetensors_writer.h"

namespace norma {

constexpr std::size_t kLengthBytes = 8;                 // before the header
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // as other readers of the format have it
constexpr std::string_view kChecksumPrefix = "xxh64:";
constexpr std::size_t kChecksumDigits = 16;

struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;
  Metadata metadata;
};

// Throws Error unless the tensors fill `data_bytes` exactly, each with the bytes that its shape and type need.
SafetensorsHeader parse_header(std::string_view json, std::uint64_t data_bytes);

// Bytes of a tensor; throws Error on a negative dimension or when they do not fit 63 bits.
std::uint64_t tensor_bytes(const std::string& name, ElementType type, std::span<const std::int64_t> shape);

// Length and header, padded with spaces so that the data start at a multiple of 64 bytes.
std::string print_header(std::span<const TensorInfo> tensors, const Metadata& metadata);

// Where the digits of the checksum stand in `header` (as it is in the file), or npos.
std::size_t find_checksum_digits(std::string_view header);

std::string checksum_text(std::uint64_t hash);  // sixteen hexadecimal digits

}  // namespace norma
