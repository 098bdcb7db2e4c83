// A check of JSON text before it reaches a parser.
#pragma once

#include <string_view>

namespace norma {

constexpr int kDeepestJson = 100;  // what norma reads and writes is nested a few levels

// Whether brackets outside strings are nested at most so deeply, whatever else is wrong with the text. Functions of
// nlohmann-json call themselves once a level, and a hundred thousand levels exhaust the stack.
bool is_shallow_json(std::string_view text, int deepest = kDeepestJson);

}  // namespace norma
