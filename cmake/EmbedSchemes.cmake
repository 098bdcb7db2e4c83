# cmake -DFOLDER=schemes -DOUTPUT=embedded.cpp -P EmbedSchemes.cmake: writes every scheme file into one source.
file(GLOB files ${FOLDER}/*.toml)
list(SORT files)
set(entries "")
foreach(file IN LISTS files)
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} text)
  string(APPEND entries "    {\"${name}\", R\"toml(${text})toml\"},\n")
endforeach()
file(WRITE ${OUTPUT} "// Written by cmake/EmbedSchemes.cmake from schemes/*.toml.
#include \"schemes/catalogue.h\"

namespace norma {

std::span<const EmbeddedScheme> embedded_schemes() {
  static constexpr EmbeddedScheme kAll[] = {
${entries}  };
  return kAll;
}

}  // namespace norma
")
