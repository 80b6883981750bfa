annulus_test(exchange LABEL device LIBRARIES annulus_test_devices SOURCES
  exchange/communicator_test.cc)
