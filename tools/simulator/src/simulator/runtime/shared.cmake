# The CUDA runtime as a shared library, beside the simulated libcuda.so.1 that it calls.
#
# Programs that nvcc links with -cudart shared ask for libcudart.so.13 and find it as they find that
# driver: LD_LIBRARY_PATH, or their own run path.
set(map ${CMAKE_CURRENT_LIST_DIR}/libcudart.map)
add_library(annulus_libcudart SHARED ${CMAKE_CURRENT_LIST_DIR}/exports.cc)
target_link_libraries(annulus_libcudart PRIVATE annulus_simulator_runtime)
# Kernels are registered by programs' constructors and unregistered by exit handlers, so dlclose
# leaves it there. Those of the runtime's own objects that nothing in exports.cc refers to are
# symbols too.
target_link_options(annulus_libcudart PRIVATE
  LINKER:--version-script=${map} LINKER:-z,nodelete ${ANNULUS_WHOLE_LINK} ${ANNULUS_PORTABLE_LINK})
target_sources(annulus_libcudart PRIVATE $<TARGET_OBJECTS:annulus_simulator_runtime>)
set_target_properties(annulus_libcudart PROPERTIES
  OUTPUT_NAME cudart VERSION 13 SOVERSION 13 LINK_DEPENDS ${map}
  BUILD_RPATH "\$ORIGIN" INSTALL_RPATH "\$ORIGIN"
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/simulator)
annulus_warnings(annulus_libcudart)
add_dependencies(annulus_libcudart annulus_libcuda)  # whoever builds the one wants the other
if(ANNULUS_cuda_INCLUDE)
  target_sources(annulus_libcudart PRIVATE ${CMAKE_CURRENT_LIST_DIR}/exports_check.cc)
  target_include_directories(annulus_libcudart SYSTEM PRIVATE ${ANNULUS_cuda_INCLUDE})
endif()
