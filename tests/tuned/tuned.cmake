# Tuned results: their files, keys and the store that finds them.
annulus_test(tuned LABEL unit LIBRARIES annulus_tuned annulus_test_problems SOURCES
  tuned/entry_index_test.cc tuned/entry_problem_test.cc tuned/entry_test.cc tuned/folder_work_test.cc
  tuned/shape_key_test.cc tuned/store_folder_test.cc tuned/store_packs_test.cc
  tuned/store_processes_test.cc tuned/store_test.cc tuned/tuned_pack_test.cc
  ALONE tuned/tuned_pack_test.cc
  SLOW tuned/store_processes_test.cc)

# Whether a family's kernels are those that its revision stands for.
annulus_test(revisions LABEL unit LIBRARIES annulus_tuned SOURCES tuned/revision_test.cc)
target_compile_definitions(test_revisions PRIVATE
  ANNULUS_REVISIONS="${CMAKE_CURRENT_SOURCE_DIR}/tuned/revisions.txt")
