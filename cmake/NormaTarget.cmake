# norma_library(folder DEPENDS ... SOURCES ...): one target per folder of src/. The DEPENDS are the only folders it may
# use; tests/layers_test.cpp checks the includes against them. KERNELS: mostly SIMD kernels. OPTIMISE: instead
# of Release's -O3, for code that hardly takes time to run but does to compile. Among the SOURCES, .cu files, cuda_*
# and those in cuda/ are built only when NORMA_CUDA is on.

add_library(norma_options INTERFACE)
target_compile_features(norma_options INTERFACE cxx_std_20)
target_compile_options(norma_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion -Wno-sign-conversion -Wshadow>)
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

function(norma_library name)
  cmake_parse_arguments(ARG "KERNELS" "OPTIMISE" "DEPENDS;SOURCES" ${ARGN})
  if(NOT NORMA_CUDA)
    list(FILTER ARG_SOURCES EXCLUDE REGEX "\\.cu$|(^|/)cuda[/_]")
  endif()
  add_library(norma_${name} STATIC ${ARG_SOURCES})
  add_library(norma::${name} ALIAS norma_${name})
  norma_keep_kernels_apart(${ARG_SOURCES})
  target_include_directories(norma_${name}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>
    PRIVATE ${PROJECT_SOURCE_DIR}/src)
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
