annulus_test(join LABEL device LIBRARIES annulus_test_devices SOURCES join/join_test.cc)
