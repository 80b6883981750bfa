if(ANNULUS_SIMULATOR)
  annulus_test(ring LABEL unit LIBRARIES annulus_test_devices SOURCES ring/rounds_test.cc
    ring/schedule_test.cc ring/tiles_test.cc ring/failing_calls_test.cc ALONE ring/tiles_test.cc)
endif()
annulus_test(ring_device LABEL device LIBRARIES annulus_test_devices SOURCES ring/planted_test.cc
  ring/ring_test.cc)
if(ANNULUS_SIMULATOR)
  annulus_test(ring_ranks LABEL device LIBRARIES annulus_test_devices SOURCES
    ring/rank_ring_test.cc)
endif()
annulus_test(ring_segments LABEL device LIBRARIES annulus_test_devices DEVICES sim:sm_90a SOURCES
  ring/segments_test.cc)
