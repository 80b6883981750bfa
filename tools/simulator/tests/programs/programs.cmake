# Typical CUDA programs, compiled by nvcc with -cudart shared and run on the simulated runtime and
# driver. They are skipped if there is no nvcc of CUDA 13. The first run of each compiles it, which
# takes seconds.
find_program(ANNULUS_NVCC nvcc HINTS ENV CUDACXX /usr/local/cuda/bin)
if(NOT ANNULUS_NVCC)
  set(ANNULUS_NVCC "")
endif()

# cuda_program(NAME [ARCH sm_90] [DEVICE ordinals] [EXPECT status] [SAYS regular expression])
function(cuda_program name)
  cmake_parse_arguments(PROGRAM "" "ARCH;DEVICE;EXPECT;SAYS" "" ${ARGN})
  foreach(default ARCH=sm_80 DEVICE=0 EXPECT=0 SAYS=)
    string(REGEX MATCH "^([A-Z]+)=(.*)$" matched ${default})
    if(NOT PROGRAM_${CMAKE_MATCH_1})
      set(PROGRAM_${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
    endif()
  endforeach()
  add_test(NAME cuda_program_${name} COMMAND ${CMAKE_COMMAND}
    -DSOURCE=${CMAKE_CURRENT_SOURCE_DIR}/programs/${name}.cu
    -DFOLDER=${CMAKE_CURRENT_BINARY_DIR}/programs -DSIMULATOR=$<TARGET_FILE_DIR:annulus_libcudart>
    -DNVCC=${ANNULUS_NVCC} -DARCH=${PROGRAM_ARCH} -DDEVICE=${PROGRAM_DEVICE}
    -DEXPECT=${PROGRAM_EXPECT} "-DSAYS=${PROGRAM_SAYS}"
    -P ${CMAKE_CURRENT_SOURCE_DIR}/programs/run.cmake)
  set_tests_properties(cuda_program_${name} PROPERTIES LABELS "unit;nvcc" TIMEOUT 300
    SKIP_REGULAR_EXPRESSION "^skipped: ")
endfunction()

foreach(name vector_add matrix_mul reduction scan histogram transpose monte_carlo_pi stencil
             bitonic_sort conjugate_gradient graph_capture graph_by_hand memory_kinds function_pointers
             device_heap wmma)
  cuda_program(${name})
endforeach()
cuda_program(thrust_sort DEVICE 0,8)
cuda_program(clusters ARCH sm_90 DEVICE 8)
cuda_program(lost_sync EXPECT 1 SAYS "shared memory race.*lost_sync.cu:1[01],")
