#include "store/json_text.h"

#include <nlohmann/json.hpp>

#include "core/json.h"
#include "norma/core/error.h"

namespace norma {

std::string quote_json(std::string_view text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::type_error&) {
    fail("a name or text of {} bytes is not UTF-8 and cannot be stored as JSON", text.size());
  }
}

std::string unquote_json(std::string_view quoted) {
  const nlohmann::json value = parse_json(quoted);
  if (!value.is_string()) fail("{} is not a JSON string", quoted);
  return value.get<std::string>();
}

}  // namespace norma
