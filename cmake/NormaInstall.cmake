# `cmake --install`: headers, one archive per folder, find_package(norma CONFIG) and pkg-config. The target norma::norma
# is the whole library; norma::ops and its like are its parts.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(norma_targets GLOBAL PROPERTY NORMA_TARGETS)
add_library(norma_all INTERFACE)
add_library(norma::norma ALIAS norma_all)
target_link_libraries(norma_all INTERFACE ${norma_targets})
set_target_properties(norma_all PROPERTIES EXPORT_NAME norma)

set(norma_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/norma)
install(TARGETS ${norma_targets} norma_all EXPORT normaTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT normaTargets NAMESPACE norma:: DESTINATION ${norma_package_dir})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/norma DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/normaConfig.cmake.in normaConfig.cmake
  INSTALL_DESTINATION ${norma_package_dir})
write_basic_package_version_file(normaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/normaConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/normaConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/FindGomp.cmake
  DESTINATION ${norma_package_dir})

# For pkg-config: paths from the file itself, so that the tree can be moved; archives in link order, each before what
# it uses.
file(RELATIVE_PATH norma_pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
set(norma_archives "")
foreach(target IN LISTS norma_targets)
  string(PREPEND norma_archives "-l${target} ")
endforeach()
configure_file(${PROJECT_SOURCE_DIR}/cmake/norma.pc.in norma.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/norma.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(TARGET norma)
  install(TARGETS norma RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  # The manual and the completions are what the program itself prints: they cannot say anything else than it does.
  function(norma_install_printed file)
    list(JOIN ARGN " " arguments)
    install(CODE "
      set(file \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${file}\")
      message(STATUS \"Installing: \${file}\")
      get_filename_component(folder \"\${file}\" DIRECTORY)
      file(MAKE_DIRECTORY \"\${folder}\")
      execute_process(COMMAND \"$<TARGET_FILE:norma>\" ${arguments} OUTPUT_FILE \"\${file}\" COMMAND_ERROR_IS_FATAL ANY)")
  endfunction()
  norma_install_printed(${CMAKE_INSTALL_MANDIR}/man1/norma.1 man)
  norma_install_printed(${CMAKE_INSTALL_DATADIR}/bash-completion/completions/norma completion bash)
  norma_install_printed(${CMAKE_INSTALL_DATADIR}/zsh/site-functions/_norma completion zsh)
  norma_install_printed(${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d/norma.fish completion fish)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
