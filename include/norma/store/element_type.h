// Element types of safetensors files: more than norma computes with, since files of others are read as well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "norma/core/dtype.h"
#include "norma/core/shape.h"

namespace norma {

enum class ElementType : std::uint8_t {
  boolean,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  f8_e8m0,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  i64,
  u64,
  f64,
  c64,
};

std::string_view name_of(ElementType type);  // as in the file: "F32"
std::size_t size_of(ElementType type);       // bytes
ElementType parse_element_type(std::string_view name);
ElementType element_type_of(DType dtype);
std::vector<std::int64_t> dimensions_of(const Shape& shape);

template <typename T>
constexpr ElementType element_type_of() = delete;
template <>
constexpr ElementType element_type_of<std::uint8_t>() {
  return ElementType::u8;
}
template <>
constexpr ElementType element_type_of<std::int8_t>() {
  return ElementType::i8;
}
template <>
constexpr ElementType element_type_of<std::int16_t>() {
  return ElementType::i16;
}
template <>
constexpr ElementType element_type_of<std::uint16_t>() {
  return ElementType::u16;
}
template <>
constexpr ElementType element_type_of<BFloat16>() {
  return ElementType::bf16;
}
template <>
constexpr ElementType element_type_of<std::int32_t>() {
  return ElementType::i32;
}
template <>
constexpr ElementType element_type_of<std::uint32_t>() {
  return ElementType::u32;
}
template <>
constexpr ElementType element_type_of<float>() {
  return ElementType::f32;
}
template <>
constexpr ElementType element_type_of<std::int64_t>() {
  return ElementType::i64;
}
template <>
constexpr ElementType element_type_of<std::uint64_t>() {
  return ElementType::u64;
}
template <>
constexpr ElementType element_type_of<double>() {
  return ElementType::f64;
}

}  // namespace norma
