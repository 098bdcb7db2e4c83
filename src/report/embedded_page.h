// The text of web/dist/report.html; defined in a source that the build writes.
#pragma once

#include <string_view>

namespace norma {

std::string_view embedded_page();

}  // namespace norma
