// Text of others on a terminal: titles, names and messages may hold what a terminal would obey.
#pragma once

#include <string>
#include <string_view>

namespace norma {

// With control characters (but line feeds and tabs), marks that turn the direction of writing, and bytes that are no
// UTF-8 spelled out: \x1b, \u202e.
std::string printable(std::string_view text);

// The same for JSON text, which stays the same JSON: what it does not escape by itself becomes \u009b.
std::string printable_json(std::string_view json);

}  // namespace norma
