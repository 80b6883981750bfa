annulus_test(attention LABEL unit LIBRARIES annulus_attention SOURCES attention/pipe_model_test.cc
  attention/plan_test.cc
  attention/problem_test.cc attention/reference_test.cc attention/state_test.cc
  attention/taint_test.cc
  attention/tile_list_test.cc support/random_problem.cc)
annulus_test(attention_device LABEL device LIBRARIES annulus_api SOURCES attention/forward_calls_test.cc
  attention/forward_test.cc attention/kernel_work_test.cc attention/special_values_test.cc
  support/device_case.cc support/random_problem.cc)
