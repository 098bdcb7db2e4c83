#include "train/fields.h"

#include <cmath>
#include <sstream>

namespace norma {

std::string given(const toml::node& node) {
  if (const auto* number = node.as_floating_point()) return number_text(number->get());
  std::ostringstream text;
  node.visit([&](const auto& value) { text << value; });
  return text.str();
}

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

double read_number(const toml::node& node, double low, double high) {
  const auto value = node.value<double>();
  if (!value || node.is_boolean() || node.is_string() || !(*value >= low && *value <= high))
    fail("{} was given; expected a number from {} to {}", given(node), low, high);
  return *value;
}

std::int64_t read_whole(const toml::node& node, std::int64_t low, std::int64_t high) {
  std::optional<std::int64_t> value;
  if (node.is_integer()) value = node.value<std::int64_t>();
  // 1e4 is a fine way to write a whole number.
  if (const auto* number = node.as_floating_point();
      number != nullptr && std::floor(number->get()) == number->get() && std::abs(number->get()) < 9e15)
    value = static_cast<std::int64_t>(number->get());
  if (!value || *value < low || *value > high)
    fail("{} was given; expected a whole number from {} to {}", given(node), low, high);
  return *value;
}

}  // namespace norma
