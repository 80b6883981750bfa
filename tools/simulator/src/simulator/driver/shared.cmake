# The simulator as shared libraries, which are made of the same objects.
#
# libannulus_simulator.so is in the same folder as libannulus.so, which opens it for devices named
# sim:... . Other programs link it (annulus::simulator). libcuda.so.1 is for programs that expect a
# CUDA driver of that name. It is in a separate folder, so that only a program gets it that names
# the folder (LD_LIBRARY_PATH, ANNULUS_LIBRARY_PATH).
function(annulus_simulator_library target map)
  add_library(${target} SHARED ${CMAKE_CURRENT_LIST_DIR}/exports.cc
    ${CMAKE_CURRENT_LIST_DIR}/../nccl/interface_exports.cc)
  # dlclose leaves the library in memory, because the threads of its pools would outlive its code.
  set_target_properties(${target} PROPERTIES LINK_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/${map})
  target_link_libraries(${target} PRIVATE annulus_simulator)
  target_link_options(${target} PRIVATE
    LINKER:--version-script=${CMAKE_CURRENT_LIST_DIR}/${map} ${ANNULUS_WHOLE_LINK}
    LINKER:-z,nodelete
    ${ANNULUS_PORTABLE_LINK})
  annulus_warnings(${target})
endfunction()

annulus_simulator_library(annulus_simulator_shared simulator.map)
add_library(annulus::simulator ALIAS annulus_simulator_shared)
set_target_properties(annulus_simulator_shared PROPERTIES
  OUTPUT_NAME annulus_simulator EXPORT_NAME simulator
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
target_include_directories(annulus_simulator_shared INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/tools/simulator/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

annulus_simulator_library(annulus_libcuda libcuda.map)
target_sources(annulus_libcuda PRIVATE ${CMAKE_CURRENT_LIST_DIR}/foreign.cc)
set_target_properties(annulus_libcuda PROPERTIES
  OUTPUT_NAME cuda VERSION 1 SOVERSION 1
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/simulator)
if(ANNULUS_cuda_INCLUDE)
  target_sources(annulus_libcuda PRIVATE ${CMAKE_CURRENT_LIST_DIR}/exports_check.cc)
  target_include_directories(annulus_libcuda SYSTEM PRIVATE ${ANNULUS_cuda_INCLUDE})
endif()
