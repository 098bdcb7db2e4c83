# The OpenMP runtime that Debian's oneDNN runs on. Linked by name so that clang builds share it instead of adding libomp.
find_library(Gomp_LIBRARY NAMES gomp libgomp.so.1
  PATHS /usr/lib/gcc/${CMAKE_LIBRARY_ARCHITECTURE}/14 /usr/lib/gcc/${CMAKE_LIBRARY_ARCHITECTURE}/13
        /usr/lib/gcc/${CMAKE_LIBRARY_ARCHITECTURE}/12)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Gomp REQUIRED_VARS Gomp_LIBRARY)
if(Gomp_FOUND AND NOT TARGET Gomp::Gomp)
  add_library(Gomp::Gomp UNKNOWN IMPORTED)
  set_target_properties(Gomp::Gomp PROPERTIES IMPORTED_LOCATION ${Gomp_LIBRARY})
endif()
