annulus_test(device LABEL device LIBRARIES annulus_device
  SOURCES device/device_test.cc device/peer_test.cc)
set(device_parts device/allocation_test.cc)
if(ANNULUS_SIMULATOR)
  list(APPEND device_parts device/arena_test.cc device/failing_calls_test.cc device/run_timer_test.cc
    device/tensor_map_test.cc)
endif()
annulus_test(device_parts LABEL unit LIBRARIES annulus_device SOURCES ${device_parts})
