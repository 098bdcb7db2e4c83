# norma_library(folder DEPENDS ... SHARES ... SOURCES ...): one target per folder of src/. It sees its own headers, the
# public headers (include/norma/...) of the folders that its DEPENDS lead to, and of their private ones those that they
# SHARE with the rest of the library; the compiler finds no other (norma_make_roots). KERNELS: mostly SIMD kernels.
# OPTIMISE: instead of Release's -O3, for code that hardly takes time to run but does to compile. Among the SOURCES, .cu
# files, cuda_* and those in cuda/ are built only when NORMA_CUDA is on.

add_library(norma_options INTERFACE)
target_compile_features(norma_options INTERFACE cxx_std_20)
target_compile_options(norma_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion -Wno-sign-conversion -Wshadow -Woverloaded-virtual>)
# GCC 12 reports string concatenation as overlapping (GCC bug 105651).
target_compile_options(norma_options INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>)
if(NORMA_WARNINGS_AS_ERRORS)
  target_compile_options(norma_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Werror> $<$<COMPILE_LANGUAGE:CUDA>:--Werror=all-warnings>)
endif()
# Kernels are compiled for a baseline, AVX2 and AVX-512 and chosen at run time; the steps between bring little. Under a
# sanitizer AVX2 stands for all: the same source, a third of the time to compile.
set(norma_disabled_targets "HWY_SSSE3|HWY_SSE4|HWY_AVX3_DL")
if(NORMA_SANITIZE AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  string(APPEND norma_disabled_targets "|HWY_AVX3")
  target_compile_options(norma_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-march=haswell -maes>)
endif()
target_compile_definitions(norma_options INTERFACE "HWY_DISABLED_TARGETS=(${norma_disabled_targets})")
# Results must not depend on what the compiler finds convenient to contract; fused multiply-adds are written out.
target_compile_options(norma_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
if(NORMA_SANITIZE)
  target_compile_options(norma_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${NORMA_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer>
    # Instrumented code confuses GCC's flow analysis.
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
  # A null pointer faults by itself; these three checks double the time to compile inlined kernels.
  if(NORMA_SANITIZE MATCHES undefined)
    target_compile_options(norma_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=null,object-size,vptr>)
  endif()
  target_link_options(norma_options INTERFACE -fsanitize=${NORMA_SANITIZE})
endif()

# Files that Highway compiles once per instruction set include themselves, so they cannot share a unit with others.
function(norma_keep_kernels_apart)
  foreach(source ${ARGN})
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${source})
      file(STRINGS ${source} includes_itself REGEX "define HWY_TARGET_INCLUDE" LIMIT_COUNT 1)
      if(includes_itself)
        set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
      endif()
    endif()
  endforeach()
endfunction()

# What CMake's unity builds do, with paths that do not name the checkout: so a compiler cache serves every clone on a
# machine. Sixteen files in the order of the target make one; those with SKIP_UNITY_BUILD_INCLUSION, which must be set
# before, stay by themselves.
function(norma_join_sources target)
  get_target_property(sources ${target} SOURCES)
  set_target_properties(${target} PROPERTIES NORMA_SOURCES "${sources}")
  cmake_path(IS_PREFIX PROJECT_SOURCE_DIR ${PROJECT_BINARY_DIR} inside)
  if(NOT CMAKE_UNITY_BUILD OR NOT inside)
    return()
  endif()
  set(units ${CMAKE_CURRENT_BINARY_DIR}/${target}.units)
  set(left "")
  set(joined "")
  set(text "")
  set(in_unit 0)
  foreach(source IN LISTS sources)
    get_source_file_property(apart ${source} SKIP_UNITY_BUILD_INCLUSION)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE OUTPUT_VARIABLE path)
    cmake_path(IS_PREFIX PROJECT_BINARY_DIR ${path} generated)
    if(apart OR generated OR NOT source MATCHES "\\.cpp$")
      list(APPEND left ${source})
      continue()
    endif()
    file(RELATIVE_PATH relative ${units} ${path})
    string(APPEND text "#include \"${relative}\"\n")
    math(EXPR in_unit "${in_unit} + 1")
    if(in_unit EQUAL CMAKE_UNITY_BUILD_BATCH_SIZE)
      list(APPEND joined "${text}")
      set(text "")
      set(in_unit 0)
    endif()
  endforeach()
  if(text)
    list(APPEND joined "${text}")
  endif()
  set(number 0)
  foreach(text IN LISTS joined)
    file(CONFIGURE OUTPUT ${units}/unit_${number}.cpp CONTENT "${text}" @ONLY)  # written only when it changes
    list(APPEND left ${units}/unit_${number}.cpp)
    math(EXPR number "${number} + 1")
  endforeach()
  set_target_properties(${target} PROPERTIES SOURCES "${left}" UNITY_BUILD OFF)
endfunction()

# Folders of links in the build tree, one set for each folder of src/, because an include path shows all that lies under
# it: include/norma/<name> (public), src/<name> (all, for the target itself) and shared/src/<name> (the headers given).
# The names end like the real ones, so that what looks at paths, such as clang-tidy, finds them.
function(norma_make_roots name)
  set(root ${PROJECT_BINARY_DIR}/roots/${name})
  file(MAKE_DIRECTORY ${root}/include/norma ${root}/src)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/include/norma/${name} ${root}/include/norma/${name} SYMBOLIC)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/src/${name} ${root}/src/${name} SYMBOLIC)
  file(REMOVE_RECURSE ${root}/shared)  # one that is no longer shared must not stay; holds links to files alone
  file(MAKE_DIRECTORY ${root}/shared/src)
  foreach(header ${ARGN})
    if(NOT EXISTS ${PROJECT_SOURCE_DIR}/src/${name}/${header})
      message(FATAL_ERROR "norma_library(${name}) shares ${header}, which is not there")
    endif()
    cmake_path(GET header PARENT_PATH folder)
    file(MAKE_DIRECTORY ${root}/shared/src/${name}/${folder})
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/src/${name}/${header} ${root}/shared/src/${name}/${header} SYMBOLIC)
  endforeach()
endfunction()

# Folders that the given targets are of, and those that these see; each must have been declared before.
function(norma_folders_seen result)
  set(seen "")
  foreach(target ${ARGN})
    if(target MATCHES "^norma::(.+)$")
      if(NOT TARGET ${target})
        message(FATAL_ERROR "${target} is declared after what depends on it")
      endif()
      get_property(further GLOBAL PROPERTY NORMA_SEEN_BY_${CMAKE_MATCH_1})
      list(APPEND seen ${CMAKE_MATCH_1} ${further})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES seen)
  set(${result} ${seen} PARENT_SCOPE)
endfunction()

function(norma_library name)
  cmake_parse_arguments(ARG "KERNELS" "OPTIMISE" "DEPENDS;SHARES;SOURCES" ${ARGN})
  if(NOT NORMA_CUDA)
    list(FILTER ARG_SOURCES EXCLUDE REGEX "\\.cu$|(^|/)cuda[/_]")
  endif()
  add_library(norma_${name} STATIC ${ARG_SOURCES})
  add_library(norma::${name} ALIAS norma_${name})
  norma_keep_kernels_apart(${ARG_SOURCES})
  norma_join_sources(norma_${name})
  norma_make_roots(${name} ${ARG_SHARES})
  norma_folders_seen(seen ${ARG_DEPENDS})
  set_property(GLOBAL PROPERTY NORMA_SEEN_BY_${name} ${seen})
  set(roots ${PROJECT_BINARY_DIR}/roots)
  list(TRANSFORM seen REPLACE "(.+)" "${roots}/\\1/shared/src")
  target_include_directories(norma_${name}
    PUBLIC $<BUILD_INTERFACE:${roots}/${name}/include> $<INSTALL_INTERFACE:include>
    PRIVATE ${roots}/${name}/src ${seen})
  target_link_libraries(norma_${name} PUBLIC ${ARG_DEPENDS} PRIVATE $<BUILD_INTERFACE:norma_options>)
  target_compile_features(norma_${name} PUBLIC cxx_std_20)
  set_target_properties(norma_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON EXPORT_NAME ${name})
  set_property(GLOBAL APPEND PROPERTY NORMA_TARGETS norma_${name})
  if(ARG_OPTIMISE)
    target_compile_options(norma_${name} PRIVATE $<$<CONFIG:Release>:${ARG_OPTIMISE}>)
  endif()
  if(ARG_KERNELS AND NORMA_SANITIZE)
    # Optimising instrumented kernels takes minutes, running them as they are takes seconds.
    target_compile_options(norma_${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O0>)
  endif()
endfunction()

# Programs look for their libraries beside themselves first (tools/dist puts them there), then where the system has them.
# RPATH and not RUNPATH, because libraries that other libraries need are to be found the same way.
function(norma_relocatable program)
  set_target_properties(${program} PROPERTIES BUILD_RPATH "$ORIGIN/../lib" INSTALL_RPATH "$ORIGIN/../lib")
  target_link_options(${program} PRIVATE -Wl,--disable-new-dtags)
endfunction()
