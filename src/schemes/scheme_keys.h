// Keys of a scheme's file that follow from the table of branches.
#pragma once

#include <string>
#include <vector>

namespace norma {

using Keys = std::vector<std::string>;

Keys branch_keys();
Keys formula_keys();
Keys top_keys();
Keys rule_roles();  // of weights, in rules

}  // namespace norma
