# The simulator as a shared library, for programs that expect a CUDA driver. It lies in a folder of
# its own, so that only who asks for it (LD_LIBRARY_PATH, ANNULUS_LIBRARY_PATH) gets it.
add_library(annulus_libcuda SHARED ${CMAKE_CURRENT_LIST_DIR}/exports.cc)
set_target_properties(annulus_libcuda PROPERTIES
  OUTPUT_NAME cuda VERSION 1 SOVERSION 1
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/simulator
  LINK_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/libcuda.map)
target_link_libraries(annulus_libcuda PRIVATE annulus_sim)
target_link_options(annulus_libcuda PRIVATE
  LINKER:--version-script=${CMAKE_CURRENT_LIST_DIR}/libcuda.map LINKER:--no-undefined
  ${ANNULUS_PORTABLE_LINK})
annulus_warnings(annulus_libcuda)
if(ANNULUS_cuda_INCLUDE)
  target_sources(annulus_libcuda PRIVATE ${CMAKE_CURRENT_LIST_DIR}/exports_check.cc)
  target_include_directories(annulus_libcuda SYSTEM PRIVATE ${ANNULUS_cuda_INCLUDE})
endif()
install(TARGETS annulus_libcuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/annulus/simulator
        COMPONENT simulator)
