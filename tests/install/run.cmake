# Installs BUILD into a fresh prefix, then builds and runs EXAMPLE against it, by find_package and by pkg-config.
set(work ${BUILD}/install_test)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGV} WORKING_DIRECTORY ${BUILD} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/prefix)
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${work}/build -G Ninja -DCMAKE_CXX_COMPILER=${COMPILER}
  -DCMAKE_PREFIX_PATH=${work}/prefix -DEXAMPLE=${EXAMPLE})
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/consumer)

find_program(PKG_CONFIG pkg-config)
if(NOT PKG_CONFIG)
  message(STATUS "pkg-config is not installed; its file is not tested")
  return()
endif()
file(GLOB_RECURSE pc ${work}/prefix/*/norma.pc)
cmake_path(GET pc PARENT_PATH folder)
set(ENV{PKG_CONFIG_PATH} ${folder})
execute_process(COMMAND ${PKG_CONFIG} --cflags --libs norma OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags UNIX_COMMAND "${flags}")
run(${COMPILER} -std=c++20 ${EXAMPLE} -o ${work}/by_pkg_config ${flags})
run(${work}/by_pkg_config)
