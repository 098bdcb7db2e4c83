// Pieces of JSON text.
#pragma once

#include <string>
#include <string_view>

namespace norma {

std::string quote_json(std::string_view text);  // with quotes; throws Error when `text` is not UTF-8

// The content of a quoted JSON string, quotes included in `quoted`; throws Error when it is malformed.
std::string unquote_json(std::string_view quoted);

}  // namespace norma
