annulus_test(ring LABEL unit LIBRARIES annulus_api SOURCES ring/schedule_test.cc ring/failing_calls_test.cc
  support/device_case.cc support/random_problem.cc support/ring_case.cc)
annulus_test(ring_device LABEL device LIBRARIES annulus_api SOURCES ring/ring_test.cc
  support/device_case.cc support/random_problem.cc support/ring_case.cc)
