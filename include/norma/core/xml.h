// Text inside XML and SVG.
#pragma once

#include <string>
#include <string_view>

namespace norma {

// With markup characters as entities; control characters, which XML cannot hold, become spaces.
std::string xml_text(std::string_view text);

}  // namespace norma
