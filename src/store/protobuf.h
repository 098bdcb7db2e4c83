// Enough of protobuf's wire format to write messages: a field is a key (number and wire type) and a value.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace norma {

class ProtobufMessage {
 public:
  void add_integer(int field, std::int64_t value) {
    add_key(field, kVarint);
    add_varint(static_cast<std::uint64_t>(value));
  }
  void add_double(int field, double value) {
    add_key(field, kFixed64);
    add_fixed(std::bit_cast<std::uint64_t>(value));
  }
  void add_float(int field, float value) {
    add_key(field, kFixed32);
    add_fixed(std::bit_cast<std::uint32_t>(value));
  }
  void add_text(int field, std::string_view bytes) {
    add_key(field, kBytes);
    add_varint(bytes.size());
    bytes_ += bytes;
  }
  void add_message(int field, const ProtobufMessage& message) { add_text(field, message.bytes_); }
  void add_packed(int field, std::span<const double> values) {
    ProtobufMessage packed;
    for (const double value : values) packed.add_fixed(std::bit_cast<std::uint64_t>(value));
    add_message(field, packed);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  enum WireType : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  void add_key(int field, WireType type) { add_varint(static_cast<std::uint64_t>(field) << 3 | type); }

  void add_varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7f) | 0x80);
    bytes_ += static_cast<char>(value);
  }

  template <typename Word>
  void add_fixed(Word word) {
    for (std::size_t i = 0; i < sizeof(Word); ++i) bytes_ += static_cast<char>(word >> (8 * i));
  }

  std::string bytes_;
};

}  // namespace norma
