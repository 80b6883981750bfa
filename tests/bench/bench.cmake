# Tests of the programs of tools/bench that compute without a GPU, if these programs are built.
if(ANNULUS_BENCH)
  annulus_test(bench FULL LABEL unit LIBRARIES annulus_bench_kernels
    SOURCES bench/sass_test.cc bench/sub_core_test.cc)
endif()
