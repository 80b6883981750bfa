annulus_test(attention LABEL unit LIBRARIES annulus_attention SOURCES attention/plan_test.cc
  attention/problem_test.cc
  attention/reference_test.cc attention/state_test.cc attention/tile_list_test.cc
  support/random_problem.cc)
