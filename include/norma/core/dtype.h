// Element types. f32 computes, f64 checks gradients, bf16 only stores, i32 holds tokens and counters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "norma/core/bf16.h"

namespace norma {

enum class DType : std::uint8_t { f32, f64, bf16, i32 };

std::size_t size_of(DType dtype);
std::string_view name_of(DType dtype);
DType parse_dtype(std::string_view name);  // throws Error on an unknown name
bool is_floating(DType dtype);
bool is_known(DType dtype);      // false for a number cast to DType that is none of its names
double epsilon_of(DType dtype);  // unit roundoff times two: the spacing at 1

template <typename T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::f64;
}
template <>
constexpr DType dtype_of<BFloat16>() {
  return DType::bf16;
}
template <>
constexpr DType dtype_of<std::int32_t>() {
  return DType::i32;
}

}  // namespace norma
