# cmake -DFOLDER=schemes -DOUTPUT=embedded.cpp -P EmbedSchemes.cmake: writes every scheme file into one source.
# Those of a folder inside are of one kind of branch alone, which the folder is called by.
file(GLOB files RELATIVE ${FOLDER} ${FOLDER}/*.toml ${FOLDER}/*/*.toml)
list(SORT files)
set(entries "")
foreach(file IN LISTS files)
  get_filename_component(name ${file} NAME_WE)
  get_filename_component(kind ${file} DIRECTORY)
  file(READ ${FOLDER}/${file} text)
  string(APPEND entries "    {\"${name}\", \"${kind}\", R\"toml(${text})toml\"},\n")
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
