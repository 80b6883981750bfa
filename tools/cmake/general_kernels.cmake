# General kernels (docs/embedding.md#plans-that-do-not-wait). Once the program is built, it compiles
# them into lib/annulus/kernels, where the library finds them. They are installed next to the
# library. If the build machine has no NVRTC, there are no general kernels, and devices compile
# those that they need.
if(NOT TARGET annulus_program OR NOT ANNULUS_GENERAL_KERNELS OR CMAKE_CROSSCOMPILING)
  return()
endif()
set(kernels ${PROJECT_BINARY_DIR}/lib/annulus/kernels)
set(stamp ${PROJECT_BINARY_DIR}/generated/general_kernels.stamp)
add_custom_command(OUTPUT ${stamp}
  COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:annulus_program> -DFOLDER=${kernels}
    -DTEMPLATES=${PROJECT_BINARY_DIR}/generated/embedded_templates.cc -DSTAMP=${stamp}
    -P ${CMAKE_CURRENT_LIST_DIR}/compile_general_kernels.cmake
  DEPENDS annulus_program annulus ${CMAKE_CURRENT_LIST_DIR}/compile_general_kernels.cmake
  COMMENT "Compiling general kernels" VERBATIM)
add_custom_target(annulus_general_kernels ALL DEPENDS ${stamp})
if(TARGET annulus_simulator_shared)
  add_dependencies(annulus_general_kernels annulus_simulator_shared)
endif()
if(ANNULUS_INSTALL)
  install(DIRECTORY ${kernels} DESTINATION ${CMAKE_INSTALL_LIBDIR}/annulus OPTIONAL
    FILES_MATCHING PATTERN "*.kernel")
endif()
