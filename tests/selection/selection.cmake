annulus_test(selection LABEL device LIBRARIES annulus_test_devices DEVICES sim:sm_90a SOURCES
  selection/attend_test.cc selection/device_layout_test.cc selection/tracker_test.cc
  ALONE selection/device_layout_test.cc)
