# cmake -DFILE=web/dist/report.html -DOUTPUT=x.cpp -DHEADER=report/embedded_page.h -DFUNCTION=norma::embedded_page -P
# EmbedWeb.cmake: writes a file into one source, as bytes, because compilers limit how long a string may be.
file(READ ${FILE} digits HEX)
if(digits STREQUAL "")
  message(FATAL_ERROR "${FILE} is empty; it is part of the sources, and web/dist is built by `make web`")
endif()
string(REGEX REPLACE "(..)" "0x\\1," bytes "${digits}")
string(REGEX REPLACE "::[^:]+$" "" space "${FUNCTION}")
string(REGEX REPLACE "^.*::" "" function "${FUNCTION}")
file(WRITE ${OUTPUT} "// Written by cmake/EmbedWeb.cmake.
#include \"${HEADER}\"

namespace ${space} {

std::string_view ${function}() {
  static constexpr unsigned char kBytes[] = {${bytes}};
  return {reinterpret_cast<const char*>(kBytes), sizeof kBytes};
}

}  // namespace ${space}
")
