#include "data/settings.h"

#include <cmath>
#include <numbers>

#include "norma/core/error.h"

namespace norma {

double number_setting(const DataConfig& config, const char* name, double standard, double least, double most) {
  const auto found = config.settings.find(name);
  const double value = found == config.settings.end() ? standard : found->second;
  if (!(value >= least && value <= most)) fail("data.settings.{} is {}; expected {} to {}", name, value, least, most);
  return value;
}

std::int64_t whole_setting(const DataConfig& config, const char* name, double standard, double least, double most) {
  const double value = number_setting(config, name, standard, least, most);
  if (value != std::floor(value)) fail("data.settings.{} is {}; expected a whole number", name, value);
  return static_cast<std::int64_t>(value);
}

double normal_draw(Draws& draws) {
  const double radius = std::sqrt(-2 * std::log(draws.unit()));
  return radius * std::cos(2 * std::numbers::pi * draws.unit());
}

}  // namespace norma
