annulus_test(planner LABEL unit LIBRARIES annulus_planner annulus_simulator SOURCES
  planner/broken_kernels_test.cc planner/choices_test.cc planner/followers_test.cc
  planner/planner_test.cc planner/shape_log_test.cc planner/withheld_test.cc)
