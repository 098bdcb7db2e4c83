// sweep.toml: the tables of a run, and [sweep] with what varies.
#include <algorithm>
#include <sstream>

#include "lab/sweep/keys.h"
#include "norma/core/error.h"
#include "norma/core/names.h"
#include "norma/lab/sweep.h"
#include "train/toml_input.h"

namespace norma {
namespace {

std::string text_of(const toml::node& node) {
  std::ostringstream text;
  node.visit([&](const auto& value) { text << value; });
  return text.str();
}

void require_key(const std::string& key, const RunConfig& base) {
  if (key.starts_with("members."))
    fail("{} cannot vary in a sweep, which makes its members itself; vary train.{} instead", key, key.substr(8));
  if (is_config_key(key)) return;
  std::vector<std::string> names;
  for (const ConfigKey& known : config_keys(base)) names.push_back(known.name);
  fail("there is no key '{}'{}", key, did_you_mean(key, names));
}

std::int64_t whole(const toml::node& node, const std::string& key, std::int64_t low, std::int64_t high) {
  const auto value = node.is_integer() ? node.value<std::int64_t>() : std::nullopt;
  if (!value || *value < low || *value > high)
    fail("{}: {} was given; expected a whole number from {} to {}", key, text_of(node), low, high);
  return *value;
}

HalvingConfig read_halving(const toml::node& node) {
  const toml::table* table = node.as_table();
  if (table == nullptr) fail("sweep.halving: {} was given; expected {{eta = 3, min_steps = 100}}", text_of(node));
  HalvingConfig halving;
  for (const auto& [name, value] : *table) {
    const std::string key = "sweep.halving." + std::string(name.str());
    if (name.str() == "eta") {
      halving.eta = whole(value, key, 2, 1000);
    } else if (name.str() == "min_steps") {
      halving.min_steps = whole(value, key, 1, 1'000'000'000);
    } else {
      fail("there is no key '{}'; expected eta or min_steps", key);
    }
  }
  return halving;
}

// Dotted keys, quoted or not: `"train.lr" = 1` and `train.lr = 1` mean the same.
void flatten(const toml::table& table, const std::string& prefix,
             std::vector<std::pair<std::string, const toml::node*>>& out) {
  for (const auto& [name, node] : table) {
    const std::string key = prefix.empty() ? std::string(name.str()) : prefix + "." + std::string(name.str());
    if (const toml::table* inner = node.as_table()) {
      flatten(*inner, key, out);
    } else {
      out.emplace_back(key, &node);
    }
  }
}

void read_list(SweepConfig& config, const toml::node& node) {
  const toml::array* entries = node.as_array();
  if (entries == nullptr || entries->empty()) fail("sweep.list: expected tables, [[sweep.list]]");
  for (const toml::node& entry : *entries) {
    const toml::table* table = entry.as_table();
    if (table == nullptr) fail("sweep.list: {} was given; expected a table [[sweep.list]]", text_of(entry));
    std::vector<std::pair<std::string, const toml::node*>> values;
    flatten(*table, "", values);
    if (values.empty()) fail("sweep.list: an entry sets nothing");
    SweepPoint point;
    for (const auto& [key, value] : values) {
      require_key(key, config.base);
      point.emplace_back(key, normal_value(config, key, text_of(*value)));
    }
    config.points.push_back(std::move(point));
  }
}

void read_axes(SweepConfig& config, const toml::table& table) {
  std::vector<std::pair<std::string, const toml::node*>> values;
  flatten(table, "", values);
  for (const auto& [key, node] : values) {
    SweepAxis axis{.key = key, .values = {}};
    if (const toml::array* all = node->as_array()) {
      for (const toml::node& one : *all) axis.values.push_back(text_of(one));
    } else {
      axis.values.push_back(text_of(*node));
    }
    set_axis(config, axis.key, std::move(axis.values));
  }
}

// "[pre, post]" as its parts; commas inside brackets, parentheses and quotes do not count.
std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text.substr(1, text.size() - 2)) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == '[') {
      ++depth;
    } else if (c == ')' || c == ']') {
      --depth;
    } else if (c == ',' && depth == 0) {
      parts.emplace_back();
      continue;
    }
    parts.back() += c;
  }
  for (std::string& part : parts) {
    const std::size_t first = part.find_first_not_of(" \t"), last = part.find_last_not_of(" \t");
    part = first == std::string::npos ? "" : part.substr(first, last - first + 1);
  }
  if (parts.back().empty()) parts.pop_back();  // "[]" and a comma at the end
  return parts;
}

// sweep.members and sweep.halving.
void override_course(SweepConfig& config, const std::string& key, const std::string& value) {
  const toml::table table = parse_toml("value = " + value, key);
  const toml::node* node = table.get("value");
  if (node == nullptr || table.size() != 1) fail("{}: '{}' was given; expected one value", key, value);
  if (key == "sweep.members") {
    config.most_members = whole(*node, key, 0, 65536);
  } else {
    config.halving = read_halving(*node);
  }
}

}  // namespace

void set_axis(SweepConfig& config, const std::string& key, std::vector<std::string> values) {
  require_key(key, config.base);
  if (values.empty()) fail("{} has no values; the grid would be empty", key);
  for (std::string& value : values) value = normal_value(config, key, value);
  const auto found =
      std::find_if(config.axes.begin(), config.axes.end(), [&](const auto& axis) { return axis.key == key; });
  if (found != config.axes.end()) {
    found->values = std::move(values);
  } else {
    config.axes.push_back({key, std::move(values)});
  }
}

SweepConfig parse_sweep(std::string_view toml, std::string_view origin, const SchemeLibrary& schemes) {
  toml::table table = parse_toml(toml, origin);
  toml::table sweep;
  if (const toml::node* node = table.get("sweep")) {
    if (!node->is_table()) fail("{}: sweep is {}; expected a table [sweep]", origin, text_of(*node));
    sweep = *node->as_table();
    table.erase("sweep");
  }
  SweepConfig config{.schemes = schemes};
  std::ostringstream rest;
  rest << table;
  config.base = parse_config(rest.str(), origin, schemes);
  try {
    if (const toml::node* members = sweep.get("members"))
      config.most_members = whole(*members, "sweep.members", 0, 65536);
    if (const toml::node* halving = sweep.get("halving")) config.halving = read_halving(*halving);
    if (const toml::node* list = sweep.get("list")) read_list(config, *list);
    for (const char* key : {"members", "halving", "list"}) sweep.erase(key);
    read_axes(config, sweep);
  } catch (const Error& error) {
    fail("{}: {}", origin, error.what());
  }
  return config;
}

SweepConfig read_sweep(const std::filesystem::path& path, const SchemeLibrary& schemes) {
  return parse_sweep(read_toml(path), path.string(), schemes);
}

std::string print_sweep(const SweepConfig& config) {
  std::string text = print_config(config.base) + "\n[sweep]\n";
  if (config.most_members > 0) text += fmt::format("members = {}\n", config.most_members);
  if (config.halving)
    text += fmt::format("halving = {{eta = {}, min_steps = {}}}\n", config.halving->eta, config.halving->min_steps);
  for (const SweepAxis& axis : config.axes)
    text += fmt::format("{} = [{}]\n", toml_string(axis.key), fmt::join(axis.values, ", "));
  for (const SweepPoint& point : config.points) {
    text += "\n[[sweep.list]]\n";
    for (const auto& [key, value] : point) text += fmt::format("{} = {}\n", toml_string(key), value);
  }
  return text;
}

void override_sweep(SweepConfig& config, std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0)
    fail("'{}' does not set anything; expected key=value, as in train.lr=[1e-4, 1e-3]", assignment);
  const std::string key(assignment.substr(0, equals));
  const std::string_view value = assignment.substr(equals + 1);
  if (key == "sweep.members" || key == "sweep.halving") {
    override_course(config, key, std::string(value));
    return;
  }
  if (value.size() >= 2 && value.front() == '[' && value.back() == ']') {
    set_axis(config, key, split_list(value));
    return;
  }
  require_key(key, config.base);
  override_config(config.base, assignment, config.schemes);
  std::erase_if(config.axes, [&](const SweepAxis& axis) { return axis.key == key; });
}

}  // namespace norma
