# cmake -DFILE=web/dist/report.html -DOUTPUT=embedded_page.cpp -P EmbedWeb.cmake: writes the built page into one source,
# as bytes, because compilers limit how long a string may be.
file(READ ${FILE} digits HEX)
if(digits STREQUAL "")
  message(FATAL_ERROR "${FILE} is empty; `make web` builds it")
endif()
string(REGEX REPLACE "(..)" "0x\\1," bytes "${digits}")
file(WRITE ${OUTPUT} "// Written by cmake/EmbedWeb.cmake from web/dist/report.html.
#include \"report/embedded_page.h\"

namespace norma {
namespace {

constexpr unsigned char kPage[] = {${bytes}};

}  // namespace

std::string_view embedded_page() { return {reinterpret_cast<const char*>(kPage), sizeof kPage}; }

}  // namespace norma
")
