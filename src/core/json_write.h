// Writes types with fields (core/json_fields.h) as JSON.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/json_fields.h"
#include "norma/core/words.h"

namespace norma {

// The keys of an ordered_json stand in the order of the fields, those of a json in that of the alphabet.
template <typename Json, NonFiniteAs kNonFinite>
class JsonWriter {
 public:
  static constexpr bool kReads = false;

  template <typename T>
  static Json written(const T& value) {
    if constexpr (std::is_enum_v<T>)
      return word_for(words_for(value), value);
    else if constexpr (std::is_floating_point_v<T>)
      return number(value);
    else if constexpr (std::is_convertible_v<T, std::string_view> || std::is_integral_v<T>)
      return Json(value);
    else if constexpr (kIsOptional<T>)
      return value ? written(*value) : Json();
    else if constexpr (kIsNamed<T>)
      return named(value);
    else if constexpr (kIsVector<T>)
      return list(value);
    else
      return object_of([&](JsonWriter& io) { fields(io, value); });
  }

  // Always there.
  template <typename T>
  void field(const char* key, const T& value) {
    object_[key] = written(value);
  }
  // Always written; files of earlier versions may lack it.
  template <typename T>
  void later(const char* key, const T& value) {
    field(key, value);
  }
  // Left out when it is empty.
  template <typename T>
  void sparse(const char* key, const T& value) {
    if (!says_nothing(value)) field(key, value);
  }
  // Null when it is empty.
  template <typename T>
  void or_null(const char* key, const T& value) {
    object_[key] = says_nothing(value) ? Json() : written(value);
  }
  // Follows from other fields; written for readers that do not know how.
  template <typename T>
  void derived(const char* key, const T& value) {
    field(key, value);
  }
  // Fields of this value that stand in an object of their own.
  template <typename Inside>
  void object(const char* key, Inside inside) {
    object_[key] = object_of(inside);
  }
  // What a reader has to make sure of.
  void expect(bool /*holds*/, const char* /*key*/, const char* /*expected*/) {}

 private:
  template <typename Inside>
  static Json object_of(Inside inside) {
    JsonWriter io;
    inside(io);
    return std::move(io.object_);
  }

  static Json number(double value) {
    if (std::isfinite(value)) return value;
    if constexpr (kNonFinite == NonFiniteAs::null) return Json();
    return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  }

  template <typename T>
  static Json named(const T& values) {
    Json all = Json::object();
    for (const auto& [name, value] : values) all[name] = written(value);
    return all;
  }

  template <typename T>
  static Json list(const std::vector<T>& values) {
    Json all = Json::array();
    for (const T& value : values) all.push_back(written(value));
    return all;
  }

  Json object_ = Json::object();
};

// As text. Bytes that are not UTF-8 are marked rather than refused.
template <typename Json, NonFiniteAs kNonFinite, typename T>
std::string write_json_text(const T& value, int indent) {
  return JsonWriter<Json, kNonFinite>::written(value).dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace norma
