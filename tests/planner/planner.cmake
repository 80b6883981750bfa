annulus_test(planner LABEL unit LIBRARIES annulus_planner annulus_simulator SOURCES
  planner/broken_kernels_test.cc planner/choices_test.cc planner/followers_test.cc
  planner/planner_test.cc planner/withheld_test.cc)

annulus_test(shape_log LABEL unit LIBRARIES annulus_planner SOURCES shape_log/shape_log_test.cc)
