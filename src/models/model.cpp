#include "norma/models/model.h"

#include <algorithm>
#include <cmath>

#include "models/model_builder.h"
#include "norma/core/error.h"
#include "norma/core/names.h"

namespace norma {
namespace {

// Sizes that every configuration has, by the names that inputs and data know them by.
struct NamedSize {
  const char* name;
  std::int64_t ModelConfig::*value;
};
constexpr NamedSize kSizes[] = {{"batch", &ModelConfig::batch},
                                {"time", &ModelConfig::time},
                                {"source_time", &ModelConfig::source_time},
                                {"width", &ModelConfig::width},
                                {"vocabulary", &ModelConfig::vocabulary},
                                {"source_vocabulary", &ModelConfig::source_vocabulary},
                                {"classes", &ModelConfig::classes}};

const NamedSize* find_size(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kSizes), std::end(kSizes), [&](const NamedSize& one) { return one.name == name; });
  return found == std::end(kSizes) ? nullptr : found;
}

void check(const ModelConfig& c) {
  const auto least = [](const std::string& name, std::int64_t value, std::int64_t low) {
    if (value < low) fail("{} is {}; expected {}", name, value, low > 0 ? "at least 1" : "0 or more");
  };
  least("width", c.width, 1);
  least("batch", c.batch, 1);
  least("hidden", c.hidden, 0);
  least("classes", c.classes, 0);
  std::vector<std::string> known;
  for (const FamilyRow::OwnSize& size : c.family->sizes) {
    if (find_size(size.name) == nullptr) known.push_back(size.name);
  }
  for (const auto& [name, value] : c.sizes) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      fail("model.sizes.{}: the family {} has no such size{}{}", name, c.family->name, did_you_mean(name, known),
           known.empty() ? "" : fmt::format("; expected {}", fmt::join(known, ", ")));
    if (value < 1 || value != std::floor(value) || value > 1e9)
      fail("model.sizes.{} is {}; expected a whole number from 1 to a billion", name, value);
  }
  c.family->check(c);
}

}  // namespace

std::int64_t size_of(const ModelConfig& config, const std::string& name) {
  if (const NamedSize* known = find_size(name)) return config.*known->value;
  const auto own = config.sizes.find(name);
  return own == config.sizes.end() ? 0 : static_cast<std::int64_t>(own->second);
}

void set_size(ModelConfig& config, const std::string& name, std::int64_t value) {
  if (const NamedSize* known = find_size(name)) {
    config.*known->value = value;
  } else {
    config.sizes[name] = static_cast<double>(value);
  }
}

Model build_model(Graph& graph, const ModelConfig& config, const ModelOptions& options) {
  check(config);
  ModelBuilder builder(graph, config, options);
  config.family->build(builder);
  return builder.take();
}

}  // namespace norma
