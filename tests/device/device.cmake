annulus_test(device LABEL device LIBRARIES annulus_device
  SOURCES device/device_test.cc device/peer_test.cc)
if(ANNULUS_SIMULATOR)
  annulus_test(device_failing LABEL unit LIBRARIES annulus_device
    SOURCES device/failing_calls_test.cc)
  annulus_test(device_tensor_map LABEL unit LIBRARIES annulus_device
    SOURCES device/tensor_map_test.cc)
  annulus_test(device_arena LABEL unit LIBRARIES annulus_device SOURCES device/arena_test.cc)
  annulus_test(device_run_timer LABEL unit LIBRARIES annulus_device
    SOURCES device/run_timer_test.cc)
endif()
annulus_test(device_allocation LABEL unit LIBRARIES annulus_device
  SOURCES device/allocation_test.cc)
