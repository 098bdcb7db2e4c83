// Reads types with fields (core/json_fields.h) from JSON that may be anything: what does not fit is an Error that names
// file, field, what it is and what was expected. Keys that nobody asks for are passed over.
#pragma once

#include <limits>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "core/json_fields.h"
#include "norma/core/error.h"
#include "norma/core/words.h"

namespace norma {

// Where a value stands in a file. Refers to what is around it and costs nothing until it is printed.
class JsonPath {
 public:
  explicit JsonPath(std::string_view file) : key_(file) {}
  JsonPath(const JsonPath& outer, std::string_view key) : outer_(&outer), key_(key) {}
  JsonPath(const JsonPath& outer, std::size_t index) : outer_(&outer), index_(index) {}

  std::string_view file() const { return outer_ == nullptr ? key_ : outer_->file(); }
  std::string text() const;  // "runs[3].curve.loss[2]"; "it" for the whole file

 private:
  const JsonPath* outer_ = nullptr;
  std::string_view key_;
  std::size_t index_ = 0;
};

// "text", -1.5, a list of 3, an object; long texts are cut.
std::string excerpt_of(const nlohmann::ordered_json& value);

class JsonReader {
 public:
  using Json = nlohmann::ordered_json;
  static constexpr bool kReads = true;

  JsonReader(const Json& object, const JsonPath& path, NonFiniteAs non_finite)
      : object_(object), path_(path), non_finite_(non_finite) {
    if (!object.is_object()) fail_at(path, object, "an object");
  }

  template <typename T>
  void field(const char* key, T& value) {
    const Json* found = find(key);
    if (found == nullptr) fail_without(key);
    read(*found, value, JsonPath(path_, key));
  }
  // What is not there keeps the value that it has.
  template <typename T>
  void later(const char* key, T& value) {
    if (const Json* found = find(key)) read(*found, value, JsonPath(path_, key));
  }
  template <typename T>
  void sparse(const char* key, T& value) {
    later(key, value);
  }
  template <typename T>
  void or_null(const char* key, T& value) {
    const Json* found = find(key);
    if (found == nullptr) fail_without(key);
    if (!found->is_null()) read(*found, value, JsonPath(path_, key));
  }
  template <typename T>
  void derived(const char* /*key*/, const T& /*value*/) {}
  template <typename Inside>
  void object(const char* key, Inside inside) {
    const Json* found = find(key);
    if (found == nullptr) fail_without(key);
    const JsonPath path(path_, key);
    JsonReader io(*found, path, non_finite_);
    inside(io);
  }
  void expect(bool holds, const char* key, const char* expected) {
    const Json* found = find(key);
    if (!holds) fail_at(JsonPath(path_, key), found == nullptr ? Json() : *found, expected);
  }

  template <typename T>
  void read(const Json& json, T& value, const JsonPath& path) const {
    if constexpr (std::is_same_v<T, bool>) {
      if (!json.is_boolean()) fail_at(path, json, "true or false");
      value = json.get<bool>();
    } else if constexpr (std::is_enum_v<T>) {
      value = word<T>(json, path);
    } else if constexpr (std::is_integral_v<T>) {
      value = static_cast<T>(whole(json, path, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
    } else if constexpr (std::is_floating_point_v<T>) {
      value = number(json, path);
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!json.is_string()) fail_at(path, json, "text");
      value = json.get<std::string>();
    } else if constexpr (kIsOptional<T>) {
      value.reset();
      if (!json.is_null()) read(json, value.emplace(), path);
    } else if constexpr (kIsNamed<T>) {
      read_named(json, value, path);
    } else if constexpr (kIsVector<T>) {
      read_list(json, value, path);
    } else {
      JsonReader io(json, path, non_finite_);
      fields(io, value);
    }
  }

 private:
  [[noreturn]] static void fail_at(const JsonPath& path, const Json& given, std::string_view expected) {
    fail("{} is damaged: {} is {}; expected {}", path.file(), path.text(), excerpt_of(given), expected);
  }
  [[noreturn]] void fail_without(const char* key) const {
    fail("{} is damaged: {} has no '{}'", path_.file(), path_.text(), key);
  }

  const Json* find(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }

  double number(const Json& json, const JsonPath& path) const;
  static std::int64_t whole(const Json& json, const JsonPath& path, std::int64_t low, std::int64_t high);

  template <typename T>
  static T word(const Json& json, const JsonPath& path) {
    const auto words = words_for(T());
    for (const auto& entry : words) {
      if (json.is_string() && json.get_ref<const std::string&>() == entry.word) return entry.choice;
    }
    fail_at(path, json, fmt::format("one of {}", fmt::join(words_of(words), ", ")));
  }

  template <typename T>
  void read_list(const Json& json, std::vector<T>& values, const JsonPath& path) const {
    if (!json.is_array()) fail_at(path, json, "a list");
    values.clear();
    values.reserve(json.size());
    for (std::size_t i = 0; i < json.size(); ++i) read(json[i], values.emplace_back(), JsonPath(path, i));
  }

  template <typename T>
  void read_named(const Json& json, std::vector<std::pair<std::string, T>>& values, const JsonPath& path) const {
    if (!json.is_object()) fail_at(path, json, "an object");
    values.clear();
    for (const auto& [name, value] : json.items()) {
      values.emplace_back(name, T());
      read(value, values.back().second, JsonPath(path, name));
    }
  }

  template <typename T>
  void read_named(const Json& json, std::map<std::string, T>& values, const JsonPath& path) const {
    if (!json.is_object()) fail_at(path, json, "an object");
    values.clear();
    for (const auto& [name, value] : json.items()) read(value, values[name], JsonPath(path, name));
  }

  const Json& object_;
  const JsonPath& path_;
  NonFiniteAs non_finite_;
};

// `file` stands in errors as it is given.
template <typename T>
T read_json_text(std::string_view text, std::string_view file, NonFiniteAs non_finite) {
  const auto json = parse_json<JsonReader::Json>(text);
  const JsonPath path(file);
  if (json.is_discarded()) fail("{} is damaged: it is not JSON", file);
  T value;
  JsonReader io(json, path, non_finite);
  fields(io, value);
  return value;
}

}  // namespace norma
