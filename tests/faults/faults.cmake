# One allocation of the library fails in each pass of a public flow. A few passes of each flow run
# here; `fault_allocations --for 3600` tries all of them. It stands before malloc, as the sanitizers
# do.
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  add_executable(fault_allocations ${CMAKE_CURRENT_LIST_DIR}/allocations.cc
    ${CMAKE_CURRENT_LIST_DIR}/failing_malloc.cc)
  target_include_directories(fault_allocations PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(fault_allocations PRIVATE annulus ${CMAKE_DL_LIBS})
  annulus_warnings(fault_allocations)
  annulus_opens_simulator(fault_allocations)
  add_test(NAME fault_allocations COMMAND fault_allocations --for 40 --points 25 --seed 1
    --cache ${PROJECT_BINARY_DIR}/test_cache --flow open --flow plan_memory --flow plan_disk
    --flow run --flow prefetch --flow ring --flow import)
  set_tests_properties(fault_allocations PROPERTIES LABELS unit TIMEOUT 300)
endif()
