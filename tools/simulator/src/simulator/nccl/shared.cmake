# NCCL as a shared library, in the same folder as the simulated libcuda.so.1 that it calls.
set(map ${CMAKE_CURRENT_LIST_DIR}/libnccl.map)
add_library(annulus_libnccl SHARED ${CMAKE_CURRENT_LIST_DIR}/exports.cc)
target_link_libraries(annulus_libnccl PRIVATE annulus_abi)
target_link_options(annulus_libnccl PRIVATE
  LINKER:--version-script=${map} LINKER:-z,nodelete ${ANNULUS_PORTABLE_LINK})
set_target_properties(annulus_libnccl PROPERTIES
  OUTPUT_NAME nccl VERSION 2 SOVERSION 2 LINK_DEPENDS ${map}
  BUILD_RPATH "\$ORIGIN" INSTALL_RPATH "\$ORIGIN"
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/simulator)
annulus_warnings(annulus_libnccl)
add_dependencies(annulus_libnccl annulus_libcuda)  # a build of libnccl needs libcuda too
