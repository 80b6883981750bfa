# The steps are the class that the program uses.
add_library(annulus_test_batches STATIC batch/batch_case.cc
  ${PROJECT_SOURCE_DIR}/tools/program/input/batch_step.cc ${PROJECT_SOURCE_DIR}/tools/program/input/request.cc)
target_include_directories(annulus_test_batches PUBLIC ${PROJECT_SOURCE_DIR}/tools)
target_link_libraries(annulus_test_batches PUBLIC annulus_test_devices PRIVATE doctest::doctest)
annulus_warnings(annulus_test_batches)

annulus_test(batch LABEL device LIBRARIES annulus_test_batches DEVICES sim:sm_90a SOURCES
  batch/batch_columns_test.cc batch/batch_input_test.cc batch/batch_limits_test.cc
  batch/batch_random_test.cc batch/batch_serving_test.cc batch/batch_test.cc
  batch/same_bits.cc batch/same_bits_test.cc batch/serving.cc
  ALONE batch/batch_columns_test.cc batch/batch_input_test.cc batch/batch_limits_test.cc)
annulus_test(batch_space LABEL device LIBRARIES annulus_test_batches DEVICES sim:sm_90a SOURCES
  batch/batch_space_test.cc)
annulus_test(batch_interleave LABEL device LIBRARIES annulus_test_batches DEVICES sim:sm_90a SOURCES
  batch/batch_interleave_test.cc batch/interleaved_step.cc)
annulus_test(batch_kernels LABEL unit LIBRARIES annulus_batch
  SOURCES batch/batch_compile_test.cc batch/batch_config_test.cc batch/batch_cost_test.cc
    support/recorded_usages.cc)
target_compile_definitions(test_batch_kernels PRIVATE
  ANNULUS_KERNEL_USAGES="${CMAKE_CURRENT_SOURCE_DIR}/batch/kernel_usages.txt")
annulus_test(batch_mutants FULL LABEL device SIMULATED LIBRARIES annulus_test_batches
  SOURCES batch/batch_mutants_test.cc batch/step_mutants.cc support/mutant.cc SEPARATE)
annulus_test(interleave_mutants FULL LABEL device SIMULATED LIBRARIES annulus_test_batches
  SOURCES batch/interleave_mutants_test.cc batch/interleaved_step.cc support/mutant.cc SEPARATE)
annulus_test(chunk_mutants FULL LABEL device SIMULATED LIBRARIES annulus_test_batches
  SOURCES batch/chunk_mutants_test.cc batch/step_mutants.cc support/mutant.cc SEPARATE)
annulus_test(append LABEL device LIBRARIES annulus_test_devices DEVICES sim:sm_90a SOURCES
  batch/append_case.cc batch/append_input_test.cc batch/append_test.cc
  ALONE batch/append_input_test.cc)
annulus_test(append_mutants FULL LABEL device SIMULATED LIBRARIES annulus_test_devices
  SOURCES batch/append_case.cc batch/append_mutants_test.cc support/mutant.cc SEPARATE)
annulus_test(merge LABEL device LIBRARIES annulus_test_devices DEVICES sim:sm_90a SOURCES
  batch/merge_case.cc batch/merge_states_test.cc batch/merge_test.cc batch/partial_answers.cc
  ALONE batch/merge_states_test.cc)
annulus_test(merge_mutants FULL LABEL device SIMULATED LIBRARIES annulus_test_devices
  SOURCES batch/merge_case.cc batch/merge_mutants_test.cc batch/partial_answers.cc
  support/mutant.cc SEPARATE)
