// Every named fusion in the house, in the order in which they apply.
#pragma once

#include <vector>

#include "norma/graph/rewrite.h"

namespace norma {

std::vector<Rewrite> all_fusions();

}  // namespace norma
