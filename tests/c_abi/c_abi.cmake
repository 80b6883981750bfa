# The C interface from C: programs in strict C99 that use only annulus/c.h and libannulus.so.
function(c_abi_program name)
  add_executable(${name} ${ARGN})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE annulus::annulus)
  set_target_properties(${name} PROPERTIES C_EXTENSIONS OFF)
  annulus_opens_simulator(${name})
  target_compile_options(${name} PRIVATE -Wall -Wextra -pedantic -Werror)
endfunction()

c_abi_program(test_c_abi c_abi/main.c c_abi/append.c c_abi/arguments.c c_abi/attention.c c_abi/batch.c c_abi/callbacks.c c_abi/communicator.c
  c_abi/driver_entry.c c_abi/float8.c c_abi/handles.c c_abi/inspect.c c_abi/installation.c c_abi/join.c c_abi/kernels.c c_abi/late_plan.c c_abi/layout.c c_abi/layout_formats.c
  c_abi/memory.c c_abi/merge.c c_abi/metrics.c c_abi/oracle.c c_abi/pattern.c c_abi/ranks.c c_abi/regroup.c c_abi/rendezvous.c c_abi/ring.c c_abi/sample.c c_abi/selection.c c_abi/structs.c
  c_abi/threads.c c_abi/tune.c c_abi/tuned_pack.c)
target_link_libraries(test_c_abi PRIVATE Threads::Threads m)
add_test(NAME c_abi COMMAND test_c_abi)
set_tests_properties(c_abi PROPERTIES LABELS unit TIMEOUT 900
  ENVIRONMENT "ANNULUS_CACHE_DIR=${ANNULUS_TEST_CACHE};ANNULUS_TUNED=${PROJECT_BINARY_DIR}/test_tuned")
# If a user starts the program by hand, it prints what it lacks.
add_test(NAME c_abi_environment COMMAND test_c_abi)
set_tests_properties(c_abi_environment PROPERTIES LABELS unit
  ENVIRONMENT_MODIFICATION "ANNULUS_CACHE_DIR=unset:;ANNULUS_TUNED=set:here"
  PASS_REGULAR_EXPRESSION "ANNULUS_CACHE_DIR is not set; set it.*ANNULUS_TUNED is 'here'; set it"
  FAIL_REGULAR_EXPRESSION "conditions")

annulus_quick(TESTS c_abi c_abi_environment TARGETS test_c_abi)

annulus_test(c_header LABEL unit LIBRARIES annulus SOURCES c_abi/header_test.cc)

# A program with its own CUDA driver: the simulator's libcuda.so.1.
c_abi_program(c_abi_driver c_abi/driver.c)
target_link_libraries(c_abi_driver PRIVATE ${CMAKE_DL_LIBS})
add_dependencies(c_abi_driver annulus_libcuda)
add_test(NAME c_abi_driver
  COMMAND c_abi_driver $<TARGET_FILE_DIR:annulus_libcuda>/libcuda.so.1)
set_tests_properties(c_abi_driver PROPERTIES LABELS unit
  ENVIRONMENT "ANNULUS_CACHE_DIR=${ANNULUS_TEST_CACHE};ANNULUS_TUNED=${PROJECT_BINARY_DIR}/test_tuned"
  ENVIRONMENT_MODIFICATION
    "ANNULUS_LIBRARY_PATH=path_list_prepend:$<TARGET_FILE_DIR:annulus_libcuda>")
