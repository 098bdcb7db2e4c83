// One description of a type's fields, for writing and for reading it as JSON:
//
//   template <typename Io>
//   void fields(Io& io, In<Io, Exponent>& e) {
//     io.field("value", e.value);   // always written, must be there
//     io.sparse("note", e.note);    // left out when empty
//   }
//
// Io is a JsonWriter (core/json_write.h) or a JsonReader (core/json_read.h). Values may be bool, whole numbers, double,
// text, enums with a table `words_for`, optional (null: none), vectors, maps and vectors of named values (objects), and
// types with fields.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace norma {

// What `fields` is handed: the value to be filled by a reader, a constant one for a writer.
template <typename Io, typename T>
using In = std::conditional_t<Io::kReads, T, const T>;

// What stands for a number that JSON cannot say: "nan", "inf" and "-inf" by name, or null.
enum class NonFiniteAs { name, null };

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

template <typename T>
inline constexpr bool kIsVector = false;
template <typename T>
inline constexpr bool kIsVector<std::vector<T>> = true;

// An object whose keys are data.
template <typename T>
inline constexpr bool kIsNamed = false;
template <typename T>
inline constexpr bool kIsNamed<std::map<std::string, T>> = true;
template <typename T>
inline constexpr bool kIsNamed<std::vector<std::pair<std::string, T>>> = true;

// Empty, zero or none: what a sparse field leaves out.
template <typename T>
bool says_nothing(const T& value) {
  if constexpr (kIsOptional<T>)
    return !value.has_value();
  else if constexpr (std::is_integral_v<T>)
    return value == 0;
  else
    return value.empty();
}

}  // namespace norma
