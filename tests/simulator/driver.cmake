# The simulated driver's face, and its libcuda.so.1.
annulus_test(sim_driver LABEL unit LIBRARIES annulus_simulator
  SOURCES simulator/absent_test.cc simulator/assign_slots_test.cc simulator/capture_test.cc simulator/driver_launch_test.cc simulator/driver_memory_test.cc simulator/driver_test.cc
          simulator/fatbin_test.cc simulator/graph_test.cc simulator/host_memory_test.cc simulator/library_test.cc simulator/link_test.cc simulator/load_test.cc simulator/options_test.cc simulator/out_of_memory_test.cc simulator/peer_test.cc simulator/policies_test.cc simulator/race_order_test.cc simulator/race_test.cc simulator/residents_test.cc
          simulator/streams_test.cc simulator/tensor_map_test.cc simulator/vector_atomics_test.cc
  ALONE simulator/load_test.cc simulator/peer_test.cc simulator/policies_test.cc simulator/race_order_test.cc simulator/race_test.cc simulator/residents_test.cc
    simulator/streams_test.cc simulator/vector_atomics_test.cc)

# Its NCCL, with ranks of one process.
annulus_test(sim_nccl LABEL unit LIBRARIES annulus_simulator
  SOURCES simulator/nccl_test.cc simulator/nccl_processes_test.cc SEPARATE)
# A rank that is a process of its own.
add_executable(nccl_rank ${CMAKE_CURRENT_LIST_DIR}/nccl_rank.cc)
target_include_directories(nccl_rank PRIVATE ${CMAKE_CURRENT_LIST_DIR})
target_link_libraries(nccl_rank PRIVATE annulus_simulator)
annulus_warnings(nccl_rank)
target_compile_definitions(test_sim_nccl PRIVATE ANNULUS_NCCL_RANK="$<TARGET_FILE:nccl_rank>")
add_dependencies(test_sim_nccl nccl_rank)

# A program that knows nothing of Annulus, on both kinds of simulated device.
add_executable(vector_add ${CMAKE_CURRENT_LIST_DIR}/vector_add.c)
target_compile_definitions(vector_add PRIVATE _POSIX_C_SOURCE=200809L)
target_link_libraries(vector_add PRIVATE ${CMAKE_DL_LIBS})
annulus_warnings(vector_add)
if(ANNULUS_cuda_INCLUDE)
  target_compile_definitions(vector_add PRIVATE HAVE_CUDA_H)
  target_include_directories(vector_add SYSTEM PRIVATE ${ANNULUS_cuda_INCLUDE})
endif()
foreach(ordinal 0 8)
  add_test(NAME libcuda_vector_add_${ordinal}
    COMMAND vector_add $<TARGET_FILE_DIR:annulus_libcuda>/libcuda.so.1 ${ordinal})
  set_tests_properties(libcuda_vector_add_${ordinal} PROPERTIES LABELS unit)
endforeach()
# The environment chooses the devices that it sees, and their options.
add_test(NAME libcuda_vector_add_visible
  COMMAND vector_add $<TARGET_FILE_DIR:annulus_libcuda>/libcuda.so.1 1)
set_tests_properties(libcuda_vector_add_visible PROPERTIES LABELS unit
  ENVIRONMENT "CUDA_VISIBLE_DEVICES=0,8;ANNULUS_SIMULATOR_OPTIONS=seed=3,reading=strict"
  PASS_REGULAR_EXPRESSION "simulated sm_90a #0: 1000 sums are right")
add_test(NAME libcuda_vector_add_invisible
  COMMAND vector_add $<TARGET_FILE_DIR:annulus_libcuda>/libcuda.so.1 1)
set_tests_properties(libcuda_vector_add_invisible PROPERTIES LABELS unit
  ENVIRONMENT "CUDA_VISIBLE_DEVICES=8" PASS_REGULAR_EXPRESSION "INVALID_DEVICE")
add_test(NAME libcuda_vector_add_options
  COMMAND vector_add $<TARGET_FILE_DIR:annulus_libcuda>/libcuda.so.1 0)
set_tests_properties(libcuda_vector_add_options PROPERTIES LABELS unit
  ENVIRONMENT "ANNULUS_SIMULATOR_OPTIONS=sead=3" PASS_REGULAR_EXPRESSION "no option 'sead'")
# Programs that end while work is queued.
find_package(Threads REQUIRED)
add_executable(library_exit ${CMAKE_CURRENT_LIST_DIR}/library_exit.c)
target_compile_definitions(library_exit PRIVATE _POSIX_C_SOURCE=200809L)
target_link_libraries(library_exit PRIVATE ${CMAKE_DL_LIBS} Threads::Threads)
annulus_warnings(library_exit)
foreach(how exit return thread fork)
  add_test(NAME libcuda_exit_${how}
    COMMAND library_exit $<TARGET_FILE_DIR:annulus_libcuda>/libcuda.so.1 ${how})
  set_tests_properties(libcuda_exit_${how} PROPERTIES LABELS unit TIMEOUT 60
    ENVIRONMENT "ANNULUS_SIMULATOR_OPTIONS=streams=1")
endforeach()

find_library(ANNULUS_cuda_STUB cuda NO_DEFAULT_PATH
  PATHS ${ANNULUS_cuda_INCLUDE}/../lib64/stubs ${ANNULUS_cuda_INCLUDE}/../lib/stubs
        /usr/local/cuda/lib64/stubs)
mark_as_advanced(ANNULUS_cuda_STUB)
add_test(NAME libcuda_symbols COMMAND ${CMAKE_COMMAND}
  -DLIBRARY=$<TARGET_FILE:annulus_libcuda>
  -DSIMULATOR=$<TARGET_FILE:annulus_simulator_shared> -DNM=${CMAKE_NM} -DROOT=${PROJECT_SOURCE_DIR}
  -DSTUB=${ANNULUS_cuda_STUB} -P ${CMAKE_CURRENT_LIST_DIR}/symbols.cmake)
set_tests_properties(libcuda_symbols PROPERTIES LABELS unit)

# The library opened as Annulus opens a driver: found, whole and known to be simulated.
annulus_test(libcuda LABEL unit LIBRARIES annulus_device SOURCES simulator/libcuda_test.cc)
target_compile_definitions(test_libcuda PRIVATE
  ANNULUS_LIBCUDA_FOLDER="$<TARGET_FILE_DIR:annulus_libcuda>"
  ANNULUS_LIBRARY="$<TARGET_FILE:annulus>")
add_dependencies(test_libcuda annulus_libcuda annulus)

# The CUDA runtime, linked as a program links it: by its symbols alone.
annulus_test(libcudart LABEL unit LIBRARIES annulus_libcudart SOURCES simulator/libcudart_test.cc)
target_include_directories(test_libcudart PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
find_file(ANNULUS_CUDART libcudart.so.13 PATHS /usr/local/cuda/lib64 NO_DEFAULT_PATH)
add_test(NAME libcudart_symbols COMMAND ${CMAKE_COMMAND}
  -DLIBRARY=$<TARGET_FILE:annulus_libcudart> -DREAL=${ANNULUS_CUDART} -DNM=${CMAKE_NM}
  -DROOT=${PROJECT_SOURCE_DIR} -P ${CMAKE_CURRENT_LIST_DIR}/runtime_symbols.cmake)
set_tests_properties(libcudart_symbols PROPERTIES LABELS unit)
include(simulator/programs/programs.cmake)
