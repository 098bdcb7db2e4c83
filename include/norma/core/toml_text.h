// A check of TOML text before it reaches the parser.
#pragma once

#include <cstddef>
#include <string_view>

namespace norma {

constexpr std::size_t kDeepestToml = 64;  // parts of a key, brackets in brackets

// Throws Error on what TOML does not allow and toml++ 3.3 does not refuse but runs into undefined behaviour on:
// anything outside strings and comments that is no part of the language, brackets that do not match or stand where no
// value does, strings that begin inside another value, values that are no strings and are not written as TOML writes
// numbers, dates and times, and tables whose name begins with anything else than a name. Also on what is nested deeper
// than anybody writes: the parser's tables are destroyed by functions that call themselves once a level. The message
// names `origin` and the line.
void check_toml_text(std::string_view toml, std::string_view origin);

}  // namespace norma
