annulus_test(attention LABEL unit LIBRARIES annulus_attention annulus_test_problems SOURCES attention/batches_test.cc attention/float8_sums_test.cc
  attention/pipe_model_test.cc attention/plan_test.cc
  attention/problem_test.cc attention/reference_test.cc attention/kv_split_test.cc
  attention/score_expression_test.cc attention/score_test.cc attention/state_test.cc attention/taint_test.cc
  attention/tile_cache_test.cc attention/tile_list_test.cc attention/row_groups_test.cc attention/tile_runs_test.cc
  attention/work_test.cc
  ALONE attention/score_test.cc attention/state_test.cc attention/work_test.cc)
annulus_test(attention_device LABEL device LIBRARIES annulus_test_devices DEVICES sim:sm_90a SOURCES
  attention/block_sizes_test.cc attention/branches_test.cc attention/edges_test.cc
  attention/dealing_test.cc attention/examples_test.cc attention/forward_calls_test.cc attention/forward_test.cc
  attention/kernel_work_test.cc attention/row_groups_device_test.cc attention/shared_counter_test.cc
  attention/shared_lists_test.cc attention/special_values_test.cc
  attention/tensor_maps_test.cc
  ALONE attention/examples_test.cc attention/forward_calls_test.cc attention/forward_test.cc)
annulus_test(score_mod LABEL device LIBRARIES annulus_test_devices DEVICES sim:sm_90a SOURCES
  attention/score_mod_test.cc)
annulus_test(float8_device LABEL device LIBRARIES annulus_test_devices DEVICES sim:sm_90a SOURCES
  attention/float8_scales_test.cc attention/float8_test.cc ALONE attention/float8_test.cc)
annulus_test(forced_config LABEL device LIBRARIES annulus_test_devices DEVICES sim:sm_90a SOURCES
  attention/forced_config_test.cc attention/withheld_test.cc)
annulus_test(batches_device LABEL device LIBRARIES annulus_test_devices DEVICES sim:sm_90a SOURCES
  attention/batches_device_test.cc)
annulus_test(mask_program LABEL unit LIBRARIES annulus_attention SOURCES attention/mask_program_test.cc)
target_compile_definitions(test_mask_program PRIVATE ANNULUS_DOCS="${PROJECT_SOURCE_DIR}/docs")
annulus_test(general_device LABEL device LIBRARIES annulus_test_devices DEVICES sim:sm_90a SOURCES
  attention/general_test.cc)
annulus_test(split_device LABEL device LIBRARIES annulus_test_devices DEVICES sim:sm_90a SOURCES
  attention/split_test.cc attention/workspace_test.cc)
annulus_test(split_features LABEL device LIBRARIES annulus_test_devices DEVICES sim:sm_90a SOURCES
  attention/split_features_test.cc)
