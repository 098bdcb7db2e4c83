#include "places.h"

namespace norma::test {

const char* const kSourceFolder = NORMA_SOURCE_FOLDER;
const char* const kBuildFolder = NORMA_BUILD_FOLDER;
const char* const kProgram = NORMA_PROGRAM;

}  // namespace norma::test
