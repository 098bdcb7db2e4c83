// A check of TOML text before it reaches the parser.
#pragma once

#include <string_view>

namespace norma {

// Throws Error when a byte beyond ASCII stands outside strings and comments: TOML has no meaning for it, and toml++ 3.3
// runs into undefined behaviour on some letters there instead of refusing them. The message names `origin` and the
// line.
void require_ascii_outside_strings(std::string_view toml, std::string_view origin);

}  // namespace norma
