// The schemes that come with norma, compiled in from schemes/*.toml.
#pragma once

#include <string_view>
#include <vector>

#include "norma/schemes/scheme.h"

namespace norma {

const std::vector<Scheme>& catalogue();  // sorted by name

// A scheme by its name in the catalogue, or one made from a formula: anything that is not a plain name is read as the
// `sublayer` of a scheme called "formula". Throws Error naming the nearest known name.
Scheme find_scheme(std::string_view name_or_formula);

}  // namespace norma
