// Where the sources, the build and the program are. One file alone is compiled with these paths, so that all others are
// the same in every checkout, and a compiler cache serves them all.
#pragma once

namespace norma::test {

extern const char* const kSourceFolder;
extern const char* const kBuildFolder;
extern const char* const kProgram;  // norma itself; empty where it is not built

}  // namespace norma::test
