annulus_test(batch LABEL device LIBRARIES annulus_test_devices DEVICES sim:sm_90a SOURCES
  batch/batch_case.cc batch/batch_input_test.cc batch/batch_random_test.cc batch/batch_test.cc
  ALONE batch/batch_input_test.cc)
annulus_test(batch_kernels LABEL unit LIBRARIES annulus_batch SOURCES batch/batch_compile_test.cc)
annulus_test(batch_mutants LABEL device LIBRARIES annulus_test_devices
  SOURCES batch/batch_case.cc batch/batch_mutants_test.cc support/mutant.cc SEPARATE)
