#include "schemes/scheme_keys.h"

#include "norma/schemes/branch_kinds.h"

namespace norma {
namespace {

const Keys kOtherKeys = {"title", "source", "streams", "constants", "learned", "init", "lr",
                         "eps",   "decay",  "branch",  "norm",      "weights", "head", "embedding"};
const Keys kCommonRoles = {"all",    "embedding", "position", "head",    "final",    "block",
                           "weight", "norm",      "bias",     "learned", "condition"};

}  // namespace

Keys branch_keys() {
  Keys keys;
  for (const BranchKind& kind : branch_kinds()) keys.push_back(kind.key);
  return keys;
}

Keys formula_keys() {
  Keys keys = branch_keys();
  keys.insert(keys.begin(), "sublayer");
  keys.insert(keys.end(), {"layer", "cross_layer", "final"});
  return keys;
}

Keys top_keys() {
  Keys keys = formula_keys();
  keys.insert(keys.end(), kOtherKeys.begin(), kOtherKeys.end());
  return keys;
}

Keys rule_roles() {
  Keys roles = kCommonRoles;
  for (const BranchKind& kind : branch_kinds()) roles.insert(roles.end(), kind.roles.begin(), kind.roles.end());
  return roles;
}

}  // namespace norma
