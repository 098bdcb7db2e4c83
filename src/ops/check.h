// Checks shared by shape rules. Each throws Error with what was given and what was expected.
#pragma once

#include "norma/core/error.h"
#include "norma/core/shape.h"

namespace norma {

inline void check_computes(const Type& type) {
  if (type.dtype != DType::f32 && type.dtype != DType::f64)
    fail("computes in f32 or f64, but {} was given", type.str());
}

inline void check_same_dtype(const Type& a, const Type& b) {
  if (a.dtype != b.dtype) fail("{} and {} differ in dtype", a.str(), b.str());
}

inline void check_type(const char* what, const Type& given, const Type& expected) {
  if (given != expected) fail("{} must be {} but is {}", what, expected.str(), given.str());
}

inline void check_count(std::size_t given, std::size_t expected) {
  if (given != expected) fail("takes {} inputs but {} were given", expected, given);
}

// Counted from the end where negative.
inline int resolve_axis(int axis, const Shape& shape) {
  const int resolved = axis < 0 ? axis + shape.rank() : axis;
  if (resolved < 0 || resolved >= shape.rank()) fail("{} has no axis {}", shape.str(), axis);
  return resolved;
}

}  // namespace norma
