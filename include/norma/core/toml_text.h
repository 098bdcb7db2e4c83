// A check of TOML text before it reaches the parser.
#pragma once

#include <string_view>

namespace norma {

// Throws Error on what TOML does not allow and toml++ 3.3 does not refuse but runs into undefined behaviour on: bytes
// beyond ASCII outside strings and comments, and tables whose name begins with anything else than a name. The message
// names `origin` and the line.
void check_toml_text(std::string_view toml, std::string_view origin);

}  // namespace norma
