#include "norma/schemes/branch_kinds.h"

#include <algorithm>
#include <initializer_list>

#include "norma/core/error.h"
#include "norma/core/names.h"
#include "norma/ops/activation.h"
#include "norma/schemes/formula.h"
#include "norma/schemes/trace.h"

namespace norma {
namespace {

using Weight = BranchKind::Weight;

std::vector<std::string> attention_options() {
  return {"q", "k", "v", "width", "inner", "head_gain", "scores", "scale", "qk_gain", "qk_gain_stored"};
}

// In the order in which layers have them.
const std::vector<BranchKind>& table() {
  static const std::vector<BranchKind> kinds = {
      {.key = "attention",
       .scope = "attn",
       .title = "attention",
       .reads = BranchKind::Reads::sequence,
       .formula = BranchKind::Own::needed,
       .options = attention_options(),
       .roles = {"query", "key", "value", "out"},
       .weights = {{"out.weight", 0, 1, Weight::Part::last},
                   {"qkv.weight", 2, 3, Weight::Part::first},
                   {"qkv.weight", 0, 3, Weight::Part::scores},
                   {"qkv.weight", 1, 3, Weight::Part::scores}}},
      {.key = "cross",
       .scope = "cross",
       .title = "cross-attention",
       .reads = BranchKind::Reads::memory,
       .options = attention_options(),
       .roles = {"cross_query", "cross_key", "cross_value", "cross_out"},
       .weights = {{"out.weight", 0, 1, Weight::Part::last},
                   {"kv.weight", 1, 2, Weight::Part::first},
                   {"q.weight", 0, 1, Weight::Part::scores},
                   {"kv.weight", 0, 2, Weight::Part::scores}}},
      {.key = "ffn",
       .scope = "ffn",
       .title = "feed-forward",
       .reads = BranchKind::Reads::position,
       .formula = BranchKind::Own::needed,
       .options = {"inner", "gain", "gain_stored"},
       .roles = {"ffn"},
       .weights = {{"out.weight", 0, 1, Weight::Part::last}, {"in.weight", 0, 1, Weight::Part::first}}},
      {.key = "conv",
       .scope = "conv",
       .title = "convolution",
       .reads = BranchKind::Reads::sequence,
       .options = {"form", "inner", "skip", "skip_reads", "skip_pool", "stem", "head", "activation", "activation_gain"},
       .roles = {"conv", "conv_out", "conv_skip"},
       .weights = {{"out.weight", 0, 1, Weight::Part::last}, {"in.weight", 0, 1, Weight::Part::first}}},
      {.key = "token",
       .scope = "token",
       .title = "token mixing",
       .reads = BranchKind::Reads::sequence,
       .options = {"inner"},
       .roles = {},
       .weights = {{"out.weight", 0, 1, Weight::Part::last}, {"in.weight", 0, 1, Weight::Part::first}}},
      {.key = "gcn",
       .scope = "gcn",
       .title = "graph convolution",
       .reads = BranchKind::Reads::sequence,
       .options = {"edges", "weight", "activation"},
       .roles = {"gcn", "gcn_score"},
       .weights = {{"out.weight", 0, 1, Weight::Part::last}}},
  };
  return kinds;
}

void check_word(std::string_view option, const std::string& value, const std::vector<std::string>& words) {
  if (std::find(words.begin(), words.end(), value) == words.end())
    fail("{} is '{}'; expected {}{}", option, value, fmt::join(words, " or "), did_you_mean(value, words));
}

}  // namespace

std::size_t BranchKind::index() const {
  NORMA_ASSERT(this >= table().data() && this < table().data() + table().size());
  return static_cast<std::size_t>(this - table().data());
}

const std::string& BranchKind::last_weight() const {
  const auto last = std::ranges::find(weights, Weight::Part::last, &Weight::part);
  NORMA_ASSERT(last != weights.end());
  return last->name;
}

std::span<const BranchKind> branch_kinds() { return table(); }

std::vector<const BranchKind*> usual_branches(Memory memory) {
  std::vector<const BranchKind*> kinds;
  for (const BranchKind& kind : table()) {
    const bool of_memory = kind.reads == BranchKind::Reads::memory;
    if (of_memory ? memory == Memory::present : kind.formula == BranchKind::Own::needed) kinds.push_back(&kind);
  }
  return kinds;
}

const BranchKind& branch_kind(std::string_view key) {
  const auto found = std::ranges::find(table(), key, &BranchKind::key);
  NORMA_ASSERT(found != table().end());
  return *found;
}

const BranchKind* branch_called(std::string_view name) {
  const auto found = std::ranges::find(table(), name, &BranchKind::scope);
  return found == table().end() ? nullptr : &*found;
}

void check_branch_option(std::string_view option, const std::string& value) {
  const auto is = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), option) != names.end();
  };
  if (is({"q", "k", "v", "inner", "skip", "stem", "head"})) {
    if (value != "unit") norm_called(value, NormKind::layer);
  } else if (option == "width") {
    check_word(option, value, {"head", "full"});
  } else if (option == "form") {
    check_word(option, value, {"plain", "inverted"});
  } else if (option == "skip_reads") {
    check_word(option, value, {"stream", "branch"});
  } else if (option == "skip_pool") {
    check_word(option, value, {"average"});
  } else if (option == "activation") {
    parse_activation(value);
  } else if (option == "edges") {
    check_word(option, value, {"symmetric", "mean", "sum", "max", "none"});
  } else if (option == "weight") {
    check_word(option, value, {"none"});
  } else if (option == "scores") {
    check_word(option, value, {"carry"});
  } else if (option == "head_gain") {
    check_word(option, value, {"projected"});
  } else if (is({"scale", "activation_gain", "qk_gain", "qk_gain_stored", "gain", "gain_stored"})) {
    parse_expression(value);
  }
}

}  // namespace norma
