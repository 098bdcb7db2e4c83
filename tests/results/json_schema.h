// Validates JSON against a JSON Schema (draft 2020-12), as far as docs/results.schema.json uses it: type, properties,
// required, additionalProperties, items, minItems, minimum, enum, const, anyOf, $ref to #/$defs. A keyword that it does
// not know is an error, so that no rule is passed over in silence.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace norma::test {

class JsonSchema {
 public:
  explicit JsonSchema(nlohmann::json schema) : root_(std::move(schema)) {}

  // What is wrong, as "runs[3].lr is text; expected number"; empty: nothing is. `start`: a name of $defs, or the root.
  std::vector<std::string> problems(const nlohmann::json& value, const std::string& start = "") const;

  // "tuned.lr" of every property that a value has shown so far, and of every one that the schema knows.
  const std::set<std::string>& shown() const { return shown_; }
  std::set<std::string> known() const;

 private:
  using Problems = std::vector<std::string>;

  void check(const nlohmann::json& schema, const nlohmann::json& value, const std::string& where,
             const std::string& within, Problems& problems) const;
  void check_object(const nlohmann::json& schema, const nlohmann::json& value, const std::string& where,
                    const std::string& within, Problems& problems) const;
  void check_any(const nlohmann::json& schemas, const nlohmann::json& value, const std::string& where,
                 const std::string& within, Problems& problems) const;

  nlohmann::json root_;
  mutable std::set<std::string> shown_;
};

}  // namespace norma::test
