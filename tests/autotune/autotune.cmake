# The tuner: its parts alone, and whole on a device.
annulus_test(autotune LABEL unit LIBRARIES annulus_tuner annulus_test_problems SOURCES autotune/entry_index_test.cc autotune/entry_problem_test.cc autotune/entry_test.cc autotune/folder_work_test.cc autotune/journal_test.cc
  autotune/report_test.cc autotune/search_test.cc autotune/shape_key_test.cc autotune/space_test.cc autotune/stand_in_test.cc
  autotune/statistics_test.cc autotune/store_folder_test.cc autotune/store_packs_test.cc autotune/store_processes_test.cc
  autotune/store_test.cc autotune/surrogate_test.cc autotune/tuned_pack_test.cc autotune/turns_test.cc
  SLOW autotune/store_processes_test.cc)
annulus_test(autotune_device LABEL device LIBRARIES annulus_test_devices SOURCES autotune/tune_test.cc
  autotune/batch_workbench_test.cc  autotune/models_test.cc autotune/parts_test.cc autotune/verify_test.cc)
target_compile_definitions(test_autotune_device PRIVATE
  ANNULUS_TEMPLATES="${PROJECT_SOURCE_DIR}/templates")
# Whether a family's kernels are those that its revision stands for.
annulus_test(revisions LABEL unit LIBRARIES annulus_autotune SOURCES autotune/revision_test.cc)
target_compile_definitions(test_revisions PRIVATE
  ANNULUS_REVISIONS="${CMAKE_CURRENT_SOURCE_DIR}/autotune/revisions.txt")
