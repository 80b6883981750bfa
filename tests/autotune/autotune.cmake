# Tests of the tuner, of its parts alone and of the whole on a device.
annulus_test(autotune LABEL unit LIBRARIES annulus_autotune annulus_test_problems SOURCES
  autotune/journal_test.cc autotune/report_test.cc autotune/search_test.cc autotune/space_test.cc
  autotune/stand_in_test.cc autotune/statistics_test.cc autotune/surrogate_test.cc
  autotune/turns_test.cc)
annulus_test(autotune_device LABEL device LIBRARIES annulus_test_devices SOURCES autotune/tune_test.cc
  autotune/batch_workbench_test.cc  autotune/models_test.cc autotune/parts_test.cc autotune/verify_test.cc)
target_compile_definitions(test_autotune_device PRIVATE
  ANNULUS_TEMPLATES="${PROJECT_SOURCE_DIR}/templates")
