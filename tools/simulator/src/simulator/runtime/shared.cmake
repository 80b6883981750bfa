# The CUDA runtime as a shared library, in the same folder as the simulated libcuda.so.1 that it
# calls.
#
# Programs that nvcc links with -cudart shared load libcudart.so.13, and find it in the same way as
# the driver: by LD_LIBRARY_PATH, or by their own run path.
set(map ${CMAKE_CURRENT_LIST_DIR}/libcudart.map)
add_library(annulus_libcudart SHARED ${CMAKE_CURRENT_LIST_DIR}/exports.cc)
target_link_libraries(annulus_libcudart PRIVATE annulus_simulator_runtime)
# dlclose leaves the library in memory, because programs register kernels in constructors and
# unregister them in exit handlers. All objects of the runtime are linked, because exports.cc does
# not refer to all of their symbols.
target_link_options(annulus_libcudart PRIVATE
  LINKER:--version-script=${map} LINKER:-z,nodelete ${ANNULUS_WHOLE_LINK} ${ANNULUS_PORTABLE_LINK})
target_sources(annulus_libcudart PRIVATE $<TARGET_OBJECTS:annulus_simulator_runtime>)
set_target_properties(annulus_libcudart PROPERTIES
  OUTPUT_NAME cudart VERSION 13 SOVERSION 13 LINK_DEPENDS ${map}
  BUILD_RPATH "\$ORIGIN" INSTALL_RPATH "\$ORIGIN"
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/simulator)
annulus_warnings(annulus_libcudart)
add_dependencies(annulus_libcudart annulus_libcuda)  # a build of libcudart needs libcuda too
if(ANNULUS_cuda_INCLUDE)
  target_sources(annulus_libcudart PRIVATE ${CMAKE_CURRENT_LIST_DIR}/exports_check.cc)
  target_include_directories(annulus_libcudart SYSTEM PRIVATE ${ANNULUS_cuda_INCLUDE})
endif()
