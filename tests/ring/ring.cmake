if(ANNULUS_SIMULATOR)
  annulus_test(ring LABEL unit LIBRARIES annulus_test_devices SOURCES ring/rounds_test.cc
    ring/schedule_test.cc ring/tiles_test.cc ring/failing_calls_test.cc ALONE ring/tiles_test.cc)
endif()
annulus_test(ring_device LABEL device LIBRARIES annulus_test_devices SOURCES ring/planted_test.cc
  ring/ring_test.cc)
if(ANNULUS_SIMULATOR)
  annulus_test(ring_ranks LABEL device LIBRARIES annulus_test_devices SOURCES
    ring/rank_ring_test.cc)
  add_executable(fault_rank ring/fault_rank.cc)
  target_include_directories(fault_rank PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(fault_rank PRIVATE annulus_test_devices)
  annulus_warnings(fault_rank)
  annulus_opens_simulator(fault_rank)
  annulus_test(ring_faults LABEL device LIBRARIES annulus_test_devices SOURCES
    ring/faults_test.cc)
  add_dependencies(test_ring_faults fault_rank)
endif()
annulus_test(ring_segments LABEL device LIBRARIES annulus_test_devices DEVICES sim:sm_90a SOURCES
  ring/segments_test.cc)
