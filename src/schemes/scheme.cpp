#include "norma/schemes/scheme.h"

#include <toml++/toml.h>
#include <algorithm>
#include <optional>
#include <set>
#include <type_traits>
#include <utility>

#include "norma/core/error.h"
#include "norma/core/names.h"
#include "norma/core/toml_text.h"
#include "norma/schemes/branch_kinds.h"
#include "norma/schemes/evaluate.h"
#include "schemes/scheme_keys.h"

namespace norma {
namespace {

const Keys kLearnedKeys = {"init", "stored", "shape", "per", "decay", "lr", "profile", "from"};

class Reader {
 public:
  Reader(std::string_view name, std::string_view text) : name_(name) {
    check_toml_text(text, fmt::format("scheme '{}'", name));
    try {
      table_ = toml::parse(text, std::string(name));
    } catch (const toml::parse_error& error) {
      fail("scheme '{}', line {}: {}", name, error.source().begin.line, error.description());
    }
  }

  Scheme read() {
    check_keys("", table_, top_keys());
    Scheme scheme;
    scheme.name = name_;
    scheme.title = text(table_, "", "title").value_or(name_);
    scheme.source = text(table_, "", "source").value_or("");
    for (const std::string& key : formula_keys()) {
      if (const auto formula = text(table_, "", key))
        scheme.formulas.emplace(key, parse(key, [&] { return parse_formula(*formula); }));
    }
    if (scheme.formulas.empty()) fail("scheme '{}' has no formula; expected at least sublayer or layer", name_);
    check_formulas(scheme);
    if (const toml::table* streams = table("streams")) scheme.streams = expressions("streams", *streams);
    if (const toml::table* constants = table("constants")) read_constants(*constants, scheme.constants);
    if (const toml::table* learned = table("learned")) read_learned(*learned, scheme.learned);
    read_rules(scheme);
    read_branches(scheme);
    read_weights(scheme);
    check_streams(scheme);
    check_learned(scheme);
    if (const toml::table* norm = table("norm")) {
      check_keys("norm.", *norm, {"gain"});
      scheme.norm_gain = text(*norm, "norm.", "gain").value_or("w");
      if (scheme.norm_gain != "w" && scheme.norm_gain != "1 + w")
        fail("scheme '{}': norm.gain is '{}'; expected \"w\" or \"1 + w\"", name_, scheme.norm_gain);
    }
    return scheme;
  }

 private:
  // Runs a parser and says which key a mistake was in.
  template <typename Parse>
  std::invoke_result_t<Parse> parse(const std::string& key, Parse parser) const {
    try {
      return parser();
    } catch (const Error& error) {
      fail("scheme '{}', {}: {}", name_, key, error.what());
    }
  }

  void check_keys(const std::string& where, const toml::table& table, const Keys& known) const {
    for (const auto& [key, value] : table) {
      const std::string given(key.str());
      if (std::find(known.begin(), known.end(), given) == known.end()) {
        fail("scheme '{}': unknown key '{}{}'{}", name_, where, given, did_you_mean(given, known));
      }
    }
  }

  const toml::table* table(const std::string& key) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return nullptr;
    if (!node->is_table()) fail("scheme '{}': '{}' must be a table", name_, key);
    return node->as_table();
  }

  std::optional<std::string> text(const toml::table& from, const std::string& where, const std::string& key) const {
    const toml::node* node = from.get(key);
    if (node == nullptr) return std::nullopt;
    if (!node->is_string()) fail("scheme '{}': '{}{}' must be text in quotes", name_, where, key);
    return node->as_string()->get();
  }

  // A number, or an expression in quotes.
  ExpressionPtr expression(const std::string& key, const toml::node& node) const {
    if (node.is_string()) return parse(key, [&] { return parse_expression(node.as_string()->get()); });
    const std::optional<double> number = node.is_number() ? node.value<double>() : std::nullopt;
    if (!number) fail("scheme '{}': '{}' must be a number or an expression in quotes", name_, key);
    return parse(key, [&] { return parse_expression(fmt::format("{}", *number)); });
  }

  std::vector<NamedExpression> expressions(const std::string& where, const toml::table& from) const {
    std::vector<NamedExpression> result;
    for (const auto& [key, node] : from) {
      const std::string name(key.str());
      result.push_back({name, expression(where + "." + name, node)});
    }
    return result;
  }

  void check_formulas(const Scheme& scheme) const {
    const bool whole = scheme.formula("layer") != nullptr;
    const auto refuse_beside_layer = [&](const std::string& key) {
      if (whole && scheme.formula(key) != nullptr) fail("scheme '{}': give either layer or {}, not both", name_, key);
    };
    refuse_beside_layer("sublayer");
    for (const BranchKind& kind : branch_kinds()) refuse_beside_layer(kind.key);
    if (whole || scheme.formula("sublayer") != nullptr) return;
    for (const BranchKind& kind : branch_kinds()) {
      if (kind.formula == BranchKind::Own::needed && scheme.formula(kind.key) == nullptr)
        fail("scheme '{}' has no formula for {}; give {} or sublayer", name_, kind.key, kind.key);
    }
  }

  void read_constants(const toml::table& from, Constants& constants) const {
    toml::table common;
    for (const auto& [key, node] : from) {
      const std::string name(key.str());
      if ((name == "encoder" || name == "decoder") && node.is_table()) {
        (name == "encoder" ? constants.encoder : constants.decoder) =
            expressions("constants." + name, *node.as_table());
      } else {
        common.insert(name, node);
      }
    }
    constants.common = expressions("constants", common);
  }

  void read_learned(const toml::table& from, std::vector<LearnedSpec>& learned) const {
    for (const auto& [key, node] : from) {
      const std::string name(key.str()), where = "learned." + name + ".";
      if (!node.is_table())
        fail("scheme '{}': 'learned.{}' must be a table such as {{ init = 0, per = \"layer\" }}", name_, name);
      const toml::table& entry = *node.as_table();
      check_keys(where, entry, kLearnedKeys);
      if (entry.get("init") == nullptr) fail("scheme '{}': '{}init' is missing", name_, where);
      LearnedSpec spec{.name = name, .init = expression(where + "init", *entry.get("init"))};
      if (const toml::node* stored = entry.get("stored")) spec.stored = expression(where + "stored", *stored);
      read_extent(entry, where, spec);
      spec.per = choice<LearnedSpec::Per>(entry, where, "per",
                                          {{"sublayer", LearnedSpec::Per::sublayer},
                                           {"layer", LearnedSpec::Per::layer},
                                           {"stack", LearnedSpec::Per::stack}});
      if (const toml::node* decay = entry.get("decay")) {
        if (!decay->is_boolean()) fail("scheme '{}': '{}decay' must be true or false", name_, where);
        spec.decay = decay->as_boolean()->get();
      }
      if (const toml::node* lr = entry.get("lr")) spec.lr = expression(where + "lr", *lr);
      if (const toml::node* profile = entry.get("profile")) spec.profile = expression(where + "profile", *profile);
      read_from(entry, where, spec);
      learned.push_back(std::move(spec));
    }
  }

  void read_from(const toml::table& entry, const std::string& where, LearnedSpec& spec) const {
    spec.from = choice<LearnedSpec::From>(
        entry, where, "from", {{"itself", LearnedSpec::From::itself}, {"condition", LearnedSpec::From::condition}});
    if (spec.from == LearnedSpec::From::itself) return;
    for (const char* key : {"shape", "stored", "profile"}) {
      if (entry.get(key) != nullptr)
        fail("scheme '{}': '{}{}' beside from = \"condition\", which makes a vector of the width", name_, where, key);
    }
    spec.extent = LearnedSpec::Extent::width;
  }

  void read_extent(const toml::table& entry, const std::string& where, LearnedSpec& spec) const {
    const toml::node* shape = entry.get("shape");
    if (shape == nullptr || !shape->is_array()) {
      spec.extent = choice<LearnedSpec::Extent>(entry, where, "shape",
                                                {{"1", LearnedSpec::Extent::one}, {"d", LearnedSpec::Extent::width}});
      return;
    }
    spec.extent = LearnedSpec::Extent::listed;
    for (const toml::node& size : *shape->as_array()) spec.shape.push_back(expression(where + "shape", size));
    if (spec.shape.empty() || spec.shape.size() > 2)
      fail("scheme '{}': '{}shape' lists {} sizes; expected one or two", name_, where, spec.shape.size());
  }

  // One of a few words; the first is the default.
  template <typename T>
  T choice(const toml::table& from, const std::string& where, const std::string& key,
           std::vector<std::pair<std::string, T>> words) const {
    const std::optional<std::string> given = text(from, where, key);
    if (!given) return words.front().second;
    std::string expected;
    for (const auto& [word, value] : words) {
      if (word == *given) return value;
      expected += (expected.empty() ? "" : ", ") + word;
    }
    fail("scheme '{}': '{}{}' is '{}'; expected one of {}", name_, where, key, *given, expected);
  }

  void read_rules(Scheme& scheme) const {
    if (const toml::table* init = table("init")) {
      check_keys("init.", *init, {"gain", "std"});
      for (const auto& [key, node] : *init) {
        const std::string name = "init." + std::string(key.str());
        if (!node.is_table()) fail("scheme '{}': '{}' must be a table of roles", name_, name);
        check_keys(name + ".", *node.as_table(), rule_roles());
        scheme.rules[name] = expressions(name, *node.as_table());
      }
    }
    for (const char* name : {"lr", "eps", "decay"}) {
      const toml::table* rules = table(name);
      if (rules == nullptr) continue;
      check_keys(std::string(name) + ".", *rules, rule_roles());
      scheme.rules[name] = expressions(name, *rules);
    }
  }

  void read_branches(Scheme& scheme) const {
    const toml::table* branches = table("branch");
    if (branches == nullptr) return;
    check_keys("branch.", *branches, branch_keys());
    for (const auto& [key, node] : *branches) {
      const std::string branch(key.str()), where = "branch." + branch + ".";
      if (!node.is_table()) fail("scheme '{}': 'branch.{}' must be a table of options", name_, branch);
      check_keys(where, *node.as_table(), branch_kind(branch).options);
      for (const auto& [key_of_option, unused] : *node.as_table()) {
        const std::string option(key_of_option.str()), value = *text(*node.as_table(), where, option);
        parse(where + option, [&] { check_branch_option(option, value); });
        scheme.branch_options[branch][option] = value;
      }
    }
  }

  void read_weights(Scheme& scheme) const {
    if (const toml::table* weights = table("weights")) {
      check_keys("weights.", *weights, {"bias", "form", "unit"});
      scheme.weights.biases = choice<bool>(*weights, "weights.", "bias", {{"zero", true}, {"none", false}});
      scheme.weights.unit = choice<bool>(*weights, "weights.", "unit", {{"none", false}, {"embedding", true}});
      scheme.weights.form = choice<WeightForm>(*weights, "weights.", "form",
                                               {{"plain", WeightForm::plain},
                                                {"standardised", WeightForm::standardised},
                                                {"weight_norm", WeightForm::weight_norm},
                                                {"spectral", WeightForm::spectral}});
    }
    if (const toml::table* head = table("head")) {
      check_keys("head.", *head, {"scale", "gain", "gain_stored"});
      const auto entry = [&](const char* key) {
        const toml::node* node = head->get(key);
        return node == nullptr ? nullptr : expression(std::string("head.") + key, *node);
      };
      scheme.head = {entry("scale"), entry("gain"), entry("gain_stored")};
    }
    if (const toml::table* embedding = table("embedding")) {
      check_keys("embedding.", *embedding, {"scale"});
      if (const toml::node* scale = embedding->get("scale"))
        scheme.embedding.scale = expression("embedding.scale", *scale);
    }
  }

  // A stream that nothing updates carries nothing from layer to layer.
  void check_streams(const Scheme& scheme) const {
    for (const NamedExpression& stream : scheme.streams) {
      if (stream.name == "x") continue;
      const bool updated = std::any_of(scheme.formulas.begin(), scheme.formulas.end(), [&](const auto& entry) {
        const std::vector<Statement>& statements = entry.second.statements;
        return entry.first != "final" &&
               std::any_of(statements.begin(), statements.end(),
                           [&](const Statement& statement) { return statement.target == stream.name; });
      });
      if (!updated) fail("scheme '{}': no formula updates the stream '{}'", name_, stream.name);
    }
  }

  // A parameter that nothing reads is a slip of the pen.
  void check_learned(const Scheme& scheme) const {
    std::set<std::string> used;
    const auto mention = [&](const ExpressionPtr& expression) {
      if (expression == nullptr) return;
      for (std::string& name : names_in(*expression)) used.insert(std::move(name));
    };
    for (const auto& [key, formula] : scheme.formulas) {
      for (const Statement& statement : formula.statements) mention(statement.value);
    }
    for (const NamedExpression& stream : scheme.streams) mention(stream.value);
    for (const LearnedSpec& learned : scheme.learned) {
      if (!used.contains(learned.name)) fail("scheme '{}': no formula uses learned.{}", name_, learned.name);
    }
  }

  std::string name_;
  toml::table table_;
};

}  // namespace

const Formula* Scheme::formula(std::string_view key) const {
  const auto found = formulas.find(std::string(key));
  return found == formulas.end() ? nullptr : &found->second;
}

Scheme parse_scheme(std::string_view name, std::string_view toml_text) {
  Scheme scheme = Reader(name, toml_text).read();
  scheme.text = toml_text;
  return scheme;
}

}  // namespace norma
