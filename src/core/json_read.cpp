#include "core/json_read.h"

namespace norma {
namespace {

constexpr std::size_t kLongestExcerpt = 60;

}  // namespace

std::string JsonPath::text() const {
  if (outer_ == nullptr) return "it";
  const std::string before = outer_->outer_ == nullptr ? "" : outer_->text();
  if (key_.data() == nullptr) return fmt::format("{}[{}]", before, index_);
  return before.empty() ? std::string(key_) : fmt::format("{}.{}", before, key_);
}

std::string excerpt_of(const nlohmann::ordered_json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return fmt::format("a list of {}", value.size());
  if (!value.is_string()) return value.dump();
  const std::string& text = value.get_ref<const std::string&>();
  const std::string shown = nlohmann::ordered_json(text.substr(0, kLongestExcerpt))
                                .dump(-1, ' ', true, nlohmann::json::error_handler_t::ignore);
  return text.size() > kLongestExcerpt ? fmt::format("{} and {} bytes more", shown, text.size() - kLongestExcerpt)
                                       : shown;
}

double JsonReader::number(const Json& json, const JsonPath& path) const {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  if (json.is_number()) return json.get<double>();
  if (non_finite_ == NonFiniteAs::null) {
    if (!json.is_null()) fail_at(path, json, "a number or null");
    return kUnknown;
  }
  const std::string name = json.is_string() ? json.get<std::string>() : "";
  if (name == "nan") return kUnknown;
  if (name == "inf") return kInfinite;
  if (name == "-inf") return -kInfinite;
  fail_at(path, json, "a number, \"nan\", \"inf\" or \"-inf\"");
}

std::int64_t JsonReader::whole(const Json& json, const JsonPath& path, std::int64_t low, std::int64_t high) {
  const bool fits = json.is_number_unsigned() ? json.get<std::uint64_t>() <= static_cast<std::uint64_t>(high)
                                              : json.is_number_integer() && json.get<std::int64_t>() >= low &&
                                                    json.get<std::int64_t>() <= high;
  if (!fits) fail_at(path, json, fmt::format("a whole number up to {}", high));
  return json.get<std::int64_t>();
}

}  // namespace norma
