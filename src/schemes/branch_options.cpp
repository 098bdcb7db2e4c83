// Options of branches: which there are, and what they may say.
#include <algorithm>
#include <initializer_list>

#include "norma/core/error.h"
#include "norma/core/names.h"
#include "norma/schemes/scheme.h"
#include "norma/schemes/trace.h"

namespace norma {
namespace {

const std::vector<std::string> kAttentionOptions = {"q",         "k",      "v",     "width",   "inner",
                                                    "head_gain", "scores", "scale", "qk_gain", "qk_gain_stored"};
const std::vector<std::string> kFfnOptions = {"inner", "gain", "gain_stored"};

void check_word(std::string_view option, const std::string& value, const std::vector<std::string>& words) {
  if (std::find(words.begin(), words.end(), value) == words.end())
    fail("{} is '{}'; expected {}{}", option, value, fmt::join(words, " or "), did_you_mean(value, words));
}

}  // namespace

const std::vector<std::string>& branch_option_names(std::string_view branch) {
  return branch == "ffn" ? kFfnOptions : kAttentionOptions;
}

void check_branch_option(std::string_view option, const std::string& value) {
  const auto is = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), option) != names.end();
  };
  if (is({"q", "k", "v", "inner"})) {
    if (value != "unit") norm_called(value, NormKind::layer);
  } else if (option == "width") {
    check_word(option, value, {"head", "full"});
  } else if (option == "scores") {
    check_word(option, value, {"carry"});
  } else if (option == "head_gain") {
    check_word(option, value, {"projected"});
  } else if (is({"scale", "qk_gain", "qk_gain_stored", "gain", "gain_stored"})) {
    parse_expression(value);
  }
}

}  // namespace norma
