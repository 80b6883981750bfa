annulus_test(exchange LABEL device SIMULATED LIBRARIES annulus_test_devices SOURCES
  exchange/communicator_test.cc exchange/failure_test.cc)
annulus_test(rendezvous LABEL unit LIBRARIES annulus_api SOURCES
  exchange/frames_test.cc exchange/regroup_test.cc exchange/rendezvous_test.cc
  exchange/survivors_test.cc)
