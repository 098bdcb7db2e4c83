#include "results/json_schema.h"

#include <stdexcept>

namespace norma::test {
namespace {

using nlohmann::json;

const std::set<std::string> kKeywords = {"$schema",    "$defs",    "$ref",   "title",
                                         "type",       "enum",     "const",  "description",
                                         "properties", "required", "items",  "additionalProperties",
                                         "minItems",   "anyOf",    "minimum"};

std::string type_of(const json& value) {
  switch (value.type()) {
    case json::value_t::null: return "null";
    case json::value_t::boolean: return "boolean";
    case json::value_t::number_integer:
    case json::value_t::number_unsigned: return "integer";
    case json::value_t::number_float: return "number";
    case json::value_t::string: return "string";
    case json::value_t::array: return "array";
    default: return "object";
  }
}

bool has_type(const json& value, const std::string& type) {
  const std::string own = type_of(value);
  return own == type || (type == "number" && own == "integer");
}

std::string inside(const std::string& where, const std::string& key) { return where.empty() ? key : where + "." + key; }

constexpr const char* kDefs = "#/$defs/";

const json& target_of(const json& root, const std::string& reference) {
  if (!reference.starts_with(kDefs)) throw std::logic_error("the schema refers to " + reference);
  return root.at("$defs").at(reference.substr(std::string(kDefs).size()));
}

}  // namespace

std::vector<std::string> JsonSchema::problems(const json& value, const std::string& start) const {
  Problems found;
  check(start.empty() ? root_ : root_.at("$defs").at(start), value, "", start, found);
  return found;
}

void JsonSchema::check(const json& schema, const json& value, const std::string& where, const std::string& within,
                       Problems& problems) const {
  for (const auto& [keyword, unused] : schema.items()) {
    if (!kKeywords.contains(keyword))
      throw std::logic_error("the schema says '" + keyword + "', which is not understood");
  }
  const auto expected = [&](const std::string& what) {
    problems.push_back((where.empty() ? "it" : where) + " is " + value.dump().substr(0, 60) + "; expected " + what);
  };
  if (schema.contains("$ref")) {
    const std::string reference = schema.at("$ref");
    check(target_of(root_, reference), value, where, reference.substr(std::string(kDefs).size()), problems);
  }
  if (schema.contains("anyOf")) check_any(schema.at("anyOf"), value, where, within, problems);
  if (schema.contains("type")) {
    bool fits = false;
    const json& types = schema.at("type");
    for (const json& type : types.is_array() ? types : json::array({types})) fits = fits || has_type(value, type);
    if (!fits) expected(types.dump());
  }
  if (schema.contains("const") && value != schema.at("const")) expected(schema.at("const").dump());
  if (schema.contains("enum")) {
    bool fits = false;
    for (const json& one : schema.at("enum")) fits = fits || one == value;
    if (!fits) expected("one of " + schema.at("enum").dump());
  }
  if (schema.contains("minimum") && value.is_number() && value < schema.at("minimum"))
    expected("at least " + schema.at("minimum").dump());
  if (value.is_array()) {
    if (schema.contains("minItems") && value.size() < schema.at("minItems")) expected("more items");
    for (std::size_t i = 0; schema.contains("items") && i < value.size(); ++i)
      check(schema.at("items"), value[i], where + "[" + std::to_string(i) + "]", within, problems);
  }
  if (value.is_object()) check_object(schema, value, where, within, problems);
}

void JsonSchema::check_object(const json& schema, const json& value, const std::string& where,
                              const std::string& within, Problems& problems) const {
  const json properties = schema.value("properties", json::object());
  for (const json& key : schema.value("required", json::array())) {
    if (!value.contains(key.get<std::string>()))
      problems.push_back((where.empty() ? "it" : where) + " has no " + key.dump());
  }
  for (const auto& [key, one] : value.items()) {
    if (properties.contains(key)) {
      shown_.insert(within + "." + key);
      check(properties.at(key), one, inside(where, key), within + "." + key, problems);
    } else if (schema.contains("additionalProperties")) {
      const json& others = schema.at("additionalProperties");
      if (others == false)
        problems.push_back(inside(where, key) + " is not in the schema");
      else
        check(others, one, inside(where, key), within, problems);
    }
  }
}

void JsonSchema::check_any(const json& schemas, const json& value, const std::string& where, const std::string& within,
                           Problems& problems) const {
  // Of several that do not fit, the one that comes closest says why.
  Problems closest;
  for (const json& schema : schemas) {
    Problems own;
    check(schema, value, where, within, own);
    if (own.empty()) return;
    if (closest.empty() || own.size() < closest.size()) closest = std::move(own);
  }
  problems.insert(problems.end(), closest.begin(), closest.end());
}

std::set<std::string> JsonSchema::known() const {
  std::set<std::string> all;
  const auto walk = [&](const auto& self, const json& schema, const std::string& within) -> void {
    if (!schema.contains("properties")) return;
    for (const auto& [key, one] : schema.at("properties").items()) {
      all.insert(within + "." + key);
      self(self, one, within + "." + key);
    }
  };
  for (const auto& [name, schema] : root_.at("$defs").items()) walk(walk, schema, name);
  return all;
}

}  // namespace norma::test
