// Schemes by name in tests.
#pragma once

#include <string>

#include "norma/schemes/library.h"

namespace norma::test {

inline Scheme scheme_named(const std::string& name_file_or_formula) { return *SchemeChoice(name_file_or_formula); }

}  // namespace norma::test
