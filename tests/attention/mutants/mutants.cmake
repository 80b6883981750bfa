# Mistakes made on purpose in the templates themselves.
annulus_test(mutants FULL LABEL device SIMULATED LIBRARIES annulus_test_devices
  SOURCES attention/mutants/merge_mutants_test.cc attention/mutants/mma_mutants_test.cc
          attention/mutants/wgmma_mutants_test.cc support/mutant.cc SEPARATE)
