// JSON of a file: malformed or nested too deeply, it comes back as `discarded`.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "norma/core/json_depth.h"

namespace norma {

template <typename Json = nlohmann::json>
Json parse_json(std::string_view text) {
  if (!is_shallow_json(text)) return Json(nlohmann::detail::value_t::discarded);
  return Json::parse(text, nullptr, false);
}

}  // namespace norma
