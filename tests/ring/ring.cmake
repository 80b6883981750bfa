if(ANNULUS_SIMULATOR)
  annulus_test(ring LABEL unit LIBRARIES annulus_test_devices SOURCES ring/rounds_test.cc
    ring/schedule_test.cc ring/tiles_test.cc ring/failing_calls_test.cc ALONE ring/tiles_test.cc)
endif()
annulus_test(ring_device LABEL device LIBRARIES annulus_test_devices DEVICES sim:sm_90a SOURCES ring/planted_test.cc
  ring/ring_test.cc)
if(ANNULUS_SIMULATOR)
  annulus_test(ring_ranks LABEL device SIMULATED LIBRARIES annulus_test_devices SOURCES
    ring/host_calls_test.cc ring/rank_ring_test.cc SLOW ring/host_calls_test.cc)
  # Ranks that tests start as separate processes.
  foreach(program case_rank fault_rank)
    add_executable(${program} ring/${program}.cc)
    target_include_directories(${program} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(${program} PRIVATE annulus_test_devices)
    annulus_warnings(${program})
    annulus_opens_simulator(${program})
  endforeach()
  annulus_test(ring_faults FULL LABEL device SIMULATED LIBRARIES annulus_test_devices SOURCES
    ring/apart_test.cc ring/faults_test.cc ALONE ring/apart_test.cc)
  add_dependencies(test_ring_faults fault_rank)
  annulus_test(ring_processes FULL LABEL device SIMULATED LIBRARIES annulus_test_devices DEVICES sim:sm_90a SOURCES
    ring/processes_test.cc)
  add_dependencies(test_ring_processes case_rank)
endif()
annulus_test(ring_segments LABEL device LIBRARIES annulus_test_devices DEVICES sim:sm_90a SOURCES
  ring/segments_test.cc)
