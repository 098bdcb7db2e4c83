// A scheme that is given as nothing but its formula.
#pragma once

#include <string_view>

#include "norma/schemes/scheme.h"

namespace norma {

// Called "formula"; its formula is also its title. Throws FormulaError where it calls what does not go together.
Scheme formula_scheme(std::string_view text);

}  // namespace norma
