#include "data/mixture/mixture.h"

#include <cmath>
#include <numbers>

#include "data/settings.h"
#include "norma/core/error.h"

namespace norma {

Mixture::Mixture(const DataConfig& config, const BatchShape& shape)
    : GeneratedSource("mixture", shape, config.evaluation_batches) {
  const std::int64_t centres = whole_setting(config, "centres", 8, 2, 64);
  mixture_.dimensions = 2;
  mixture_.deviation = number_setting(config, "deviation", 0.15, 0.001, 0.999);
  const double radius = std::sqrt(2 * (1 - mixture_.deviation * mixture_.deviation));
  for (std::int64_t k = 0; k < centres; ++k) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(centres);
    mixture_.means.push_back(radius * std::cos(angle));
    mixture_.means.push_back(radius * std::sin(angle));
    mixture_.classes.push_back(static_cast<std::int32_t>(k));
  }
}

std::map<std::string, std::int64_t> Mixture::sizes() const {
  return {{"classes", classes()}, {"image_height", 1}, {"image_width", 1}, {"image_channels", 2}};
}

void Mixture::clear(Batch& batch) const {
  batch.numbers("image", {shape().batch, 1, 1, 2});
  batch.ids("targets", {shape().batch});
}

void Mixture::write(Draws& draws, std::int64_t row, Batch& batch) const {
  const std::uint32_t k = draws.below(static_cast<std::uint32_t>(classes()));
  float* const point = batch.numbers("image", {shape().batch, 1, 1, 2}).data() + 2 * row;
  for (std::size_t i = 0; i < 2; ++i)
    point[i] = static_cast<float>(mixture_.means[2 * k + i] + mixture_.deviation * normal_draw(draws));
  batch.ids("targets")[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(k);
}

std::string Mixture::describe() const {
  return fmt::format("mixture: points in the plane around {} centres, deviation {:.3g}", classes(), mixture_.deviation);
}

}  // namespace norma
