#include "norma/train/config.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "norma/core/words.h"
#include "norma/train/data.h"
#include "train/config_fields.h"
#include "train/toml_input.h"

namespace norma {
namespace {

std::vector<std::string> names_of(const std::vector<ConfigField>& fields) {
  std::vector<std::string> names;
  for (const ConfigField& field : fields) names.push_back(field.key);
  return names;
}

// A key of that name in another table ("data.batch": model.batch), or the nearest spelling.
std::string suggested_key(const std::string& key, const std::vector<std::string>& names) {
  const std::string last = "." + key.substr(key.rfind('.') + 1);  // of npos: all of it
  const auto same = std::ranges::find_if(names, [&](const std::string& name) { return name.ends_with(last); });
  return same != names.end() ? fmt::format(" (did you mean '{}'?)", *same) : did_you_mean(key, names);
}

void set_field(std::vector<ConfigField>& fields, const std::string& key, const toml::node& node,
               std::string_view origin) {
  const std::string prefix = origin == "--" + key ? "--" : fmt::format("{}: ", origin);
  for (ConfigField& field : fields) {
    if (field.key == key) {
      try {
        field.read(node);
      } catch (const Error& error) {
        fail("{}{}: {}", prefix, key, error.what());
      }
      return;
    }
    // A table of free names, such as model.constants.
    if (field.read_entry && key.starts_with(field.key + ".")) {
      try {
        field.read_entry(key.substr(field.key.size() + 1), node);
      } catch (const Error& error) {
        fail("{}{}: {}", prefix, key, error.what());
      }
      return;
    }
  }
  fail("{}: there is no key '{}'{}", origin, key, suggested_key(key, names_of(fields)));
}

void read_table(std::vector<ConfigField>& fields, const toml::table& table, const std::string& prefix,
                std::string_view origin) {
  for (const auto& [name, node] : table) {
    const std::string key = prefix.empty() ? std::string(name.str()) : prefix + "." + std::string(name.str());
    if (const toml::table* inner = node.as_table()) {
      read_table(fields, *inner, key, origin);
    } else {
      set_field(fields, key, node, origin);
    }
  }
}

enum class Given { by_user, by_default };

// Some families have no choice of batch; theirs takes the place of the usual one, but not of one that was asked for.
void settle_batch(ModelConfig& model, Given batch) {
  const std::int64_t only = model.family->batch;
  if (only == 0 || model.batch == only) return;
  if (batch == Given::by_user || model.batch != ModelConfig().batch) require_batch(model);
  model.batch = only;
}

RunConfig settled(RunConfig config) {
  if (config.model.batch == ModelConfig().batch) settle_batch(config.model, Given::by_default);
  return config;
}

// One key, or as many as a table of free names has entries.
void append_keys(const ConfigField& field, std::vector<ConfigKey>& keys) {
  if (!field.read_entry) {
    keys.push_back({field.key, field.key.substr(0, field.key.rfind('.')), field.write(), field.help});
    return;
  }
  for (const auto& [name, value] : field.entries())
    keys.push_back({field.key + "." + name, field.key, value, field.help});
}

}  // namespace

RunConfig::RunConfig() {
  model.vocabulary = 0;
  data.task = kFamilyTask;
}

RunConfig parse_config(std::string_view toml, std::string_view origin, const SchemeLibrary& schemes) {
  RunConfig config;
  std::vector<ConfigField> fields = config_fields(config, schemes);
  const toml::table table = parse_toml(toml, origin);
  read_table(fields, table, "", origin);
  settle_batch(config.model, table.at_path("model.batch") ? Given::by_user : Given::by_default);
  member_configs(config);
  return config;
}

RunConfig read_config(const std::filesystem::path& path, const SchemeLibrary& schemes) {
  return parse_config(read_toml(path), path.string(), schemes);
}

void override_config(RunConfig& config, std::string_view assignment, const SchemeLibrary& schemes) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0)
    fail("'{}' does not set anything; expected key=value, as in train.lr=3e-4", assignment);
  const std::string key(assignment.substr(0, equals)), value(assignment.substr(equals + 1));
  std::vector<ConfigField> fields = config_fields(config, schemes);
  const std::int64_t only_before = config.model.family->batch;
  toml::table table;
  try {
    table = parse_toml("value = " + value, key);
  } catch (const Error&) {  // text without quotes
    table.insert("value", value);
  }
  if (table.size() != 1 || table.get("value")->is_table()) {
    table = {};
    table.insert("value", value);
  }
  set_field(fields, key, *table.get("value"), "--" + key);
  if (key == "model.family" && only_before > 0) config.model.batch = ModelConfig().batch;  // was no choice of anybody
  settle_batch(config.model, key == "model.batch" ? Given::by_user : Given::by_default);
  member_configs(config);
}

bool is_config_key(std::string_view key) {
  RunConfig config;
  const std::vector<ConfigField> fields = config_fields(config);
  return std::any_of(fields.begin(), fields.end(), [&](const ConfigField& field) {
    return field.read_entry ? key.starts_with(field.key + ".") : field.key == key;
  });
}

std::vector<ConfigKey> config_keys(const RunConfig& config) {
  RunConfig copy = settled(config);
  std::vector<ConfigKey> keys;
  for (const ConfigField& field : config_fields(copy)) append_keys(field, keys);
  return keys;
}

std::string print_config(const RunConfig& config, bool with_help) {
  RunConfig copy = settled(config);
  std::string text, open;
  for (const ConfigField& field : config_fields(copy)) {
    std::vector<ConfigKey> keys;
    append_keys(field, keys);
    if (!with_help) std::erase_if(keys, [&](const ConfigKey& key) { return key.value == field.unless; });
    // A table without entries changes nothing; who asks for help sees that there could be one.
    if (keys.empty() && with_help) text += fmt::format("\n{:<34} # {}\n", "# [" + field.key + "]", field.help);
    for (const ConfigKey& key : keys) {
      if (key.table != open) {
        text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", key.table);
        open = key.table;
      }
      const std::string line = fmt::format("{} = {}", toml_key(key.name.substr(key.table.size() + 1)), key.value);
      text += with_help ? fmt::format("{:<34} # {}\n", line, key.help) : line + "\n";
    }
  }
  return text;
}

const Backend& device_backend(const RunConfig& config) { return backend(config.train.device, config.model.dtype); }

std::vector<TrainConfig> member_configs(const RunConfig& config) {
  const MembersConfig& m = config.members;
  std::size_t count = 1;
  const char* longest = "";
  const auto check = [&](const char* name, std::size_t size) {
    if (size <= 1) return;
    if (count > 1 && size != count)
      fail("members.{} has {} values but members.{} has {}; lists must be of one length", name, size, longest, count);
    count = size;
    longest = name;
  };
  check("seed", m.seed.size());
  check("data_seed", m.data_seed.size());
  check("warmup", m.warmup.size());
  check("lr", m.lr.size());
  check("weight_decay", m.weight_decay.size());
  check("beta1", m.beta1.size());
  check("beta2", m.beta2.size());
  check("eps", m.eps.size());
  check("clip", m.clip.size());
  check("dropout", m.dropout.size());
  std::vector<TrainConfig> members(count, config.train);
  for (std::size_t i = 0; i < count; ++i) {
    TrainConfig& one = members[i];
    const auto pick = [&](const auto& values, auto& target) {
      if (!values.empty()) target = values.size() == 1 ? values[0] : values[i];
    };
    pick(m.seed, one.seed);
    pick(m.data_seed, one.data_seed);
    pick(m.warmup, one.schedule.warmup);
    pick(m.lr, one.lr);
    pick(m.weight_decay, one.optimiser.weight_decay);
    pick(m.beta1, one.optimiser.beta1);
    pick(m.beta2, one.optimiser.beta2);
    pick(m.eps, one.optimiser.eps);
    pick(m.clip, one.clip);
    pick(m.dropout, one.dropout);
    one.schedule.steps = one.steps;
  }
  return members;
}

}  // namespace norma
