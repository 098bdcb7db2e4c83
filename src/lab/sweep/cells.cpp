// The cells of a grid, their configurations and their names.
#include <algorithm>
#include <cctype>
#include <map>

#include "lab/sweep/keys.h"
#include "norma/core/error.h"
#include "norma/core/names.h"
#include "norma/lab/sweep.h"
#include "norma/train/data.h"

namespace norma {
namespace {

constexpr std::int64_t kMostCells = 20'000;
constexpr std::size_t kLongestLabel = 100;

// "scheme-pre_lr-0.001": the last part of each key with its value, in characters that every file system takes.
std::string label_of(const SweepPoint& settings) {
  std::string label;
  for (const auto& [key, value] : settings) {
    label += (label.empty() ? "" : "_") + key.substr(key.rfind('.') + 1) + "-";
    for (const char c : value) {
      if (c == '"') continue;
      const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '+';
      label += plain ? c : '~';
    }
  }
  if (label.size() > kLongestLabel) label.resize(kLongestLabel);
  return label.empty() ? "run" : label;
}

std::string id_of(const SweepPoint& settings, RunConfig config) {
  config.train.threads = 0;  // changes no bit of the result
  return fmt::format("{}-{:010x}", label_of(settings), hash_name(print_config(config)) >> 24);
}

std::int64_t count_cells(const SweepConfig& config) {
  std::int64_t count = std::max<std::int64_t>(1, static_cast<std::int64_t>(config.points.size()));
  std::string product = config.points.empty() ? "" : std::to_string(config.points.size());
  bool too_many = count > kMostCells;
  for (const SweepAxis& axis : config.axes) {
    if (axis.values.empty()) fail("{} has no values; the grid would be empty", axis.key);
    product += (product.empty() ? "" : " x ") + std::to_string(axis.values.size());
    if (!too_many) count *= static_cast<std::int64_t>(axis.values.size());
    too_many = too_many || count > kMostCells;
  }
  if (too_many) fail("the grid has {} cells; expected at most {}", product, kMostCells);
  return count;
}

}  // namespace

std::string config_value(const RunConfig& config, const std::string& key) {
  for (const ConfigKey& known : config_keys(config)) {
    if (known.name == key) return known.value;
  }
  fail("there is no key '{}'", key);
}

std::string normal_value(const SweepConfig& sweep, const std::string& key, const std::string& value) {
  RunConfig base = sweep.base;
  override_config(base, key + "=" + value, sweep.schemes);
  return config_value(base, key);
}

std::vector<SweepCell> sweep_cells(const SweepConfig& config) {
  const std::int64_t count = count_cells(config);
  if (config.axes.empty() && config.points.empty())
    fail("the grid is empty: nothing varies; give a key several values, as in \"train.lr\" = [1e-4, 1e-3]");
  const MembersConfig& m = config.base.members;
  if (!(m.seed.empty() && m.data_seed.empty() && m.warmup.empty() && m.lr.empty() && m.weight_decay.empty() &&
        m.beta1.empty() && m.beta2.empty() && m.eps.empty() && m.clip.empty() && m.dropout.empty()))
    fail("a sweep makes its members itself; leave [members] out and vary train.lr, train.seed, ... instead");

  std::vector<SweepPoint> points = config.points.empty() ? std::vector<SweepPoint>(1) : config.points;
  std::vector<std::vector<std::string>> values;
  for (const SweepAxis& axis : config.axes) {
    values.emplace_back();
    for (const std::string& value : axis.values) values.back().push_back(normal_value(config, axis.key, value));
  }

  std::vector<SweepCell> cells;
  cells.reserve(static_cast<std::size_t>(count));
  std::map<std::string, std::size_t> seen;
  for (const SweepPoint& point : points) {
    std::vector<std::size_t> at(values.size(), 0);
    for (bool more = true; more;) {
      SweepPoint settings;
      RunConfig cell = config.base;
      const auto set = [&](const std::string& key, const std::string& value) {
        if (std::any_of(settings.begin(), settings.end(), [&](const auto& one) { return one.first == key; }))
          fail("{} stands twice: in the grid and in a [[sweep.list]], or twice in one entry", key);
        override_config(cell, key + "=" + value, config.schemes);
        settings.emplace_back(key, config_value(cell, key));
      };
      for (const auto& [key, value] : point) set(key, value);
      for (std::size_t i = 0; i < values.size(); ++i) set(config.axes[i].key, values[i][at[i]]);
      cell = settle_task(std::move(cell));
      const std::string id = id_of(settings, cell);
      if (!seen.emplace(id, cells.size()).second) fail("the grid holds the same run twice: {}", label_of(settings));
      cells.push_back({id, {settings.begin(), settings.end()}, std::move(cell)});
      more = false;
      for (std::size_t i = values.size(); i-- > 0 && !more;) {
        more = ++at[i] < values[i].size();
        if (!more) at[i] = 0;
      }
    }
  }
  return cells;
}

}  // namespace norma
