# Golden PTX programs with their definitions, and broken kernels: they compare the simulator with
# the manual.
add_library(annulus_golden STATIC
  golden/async.cc golden/atomic.cc golden/bits.cc golden/bulk.cc
  golden/cluster.cc golden/compare.cc golden/control.cc
  golden/convert.cc golden/float32.cc golden/float64.cc
  golden/fragments.cc golden/golden.cc golden/half.cc
  golden/integer.cc golden/matrix.cc golden/matrix_words.cc
  golden/mbarrier.cc golden/memory.cc golden/move.cc golden/open.cc
  golden/runner.cc golden/tensor.cc golden/tensor_store.cc
  golden/warp.cc golden/wgmma.cc golden/wmma.cc)
target_include_directories(annulus_golden PUBLIC ${PROJECT_SOURCE_DIR}/tests ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(annulus_golden PUBLIC annulus_device annulus_simulator)
# The definitions set rounding modes, and contain arithmetic that the compiler must not contract or
# fold.
target_compile_options(annulus_golden PRIVATE -O1 -ffp-contract=off -frounding-math)
annulus_warnings(annulus_golden)
annulus_precompile(annulus_golden HEADERS ${ANNULUS_COMMON_HEADERS})

set(ANNULUS_GOLDEN_PTX ${CMAKE_CURRENT_SOURCE_DIR}/ptx)
add_executable(golden_programs golden/golden_programs.cc)
target_link_libraries(golden_programs PRIVATE annulus_golden)
target_link_options(golden_programs PRIVATE ${ANNULUS_PORTABLE_LINK})
target_compile_definitions(golden_programs PRIVATE ANNULUS_GOLDEN_PTX="${ANNULUS_GOLDEN_PTX}")
target_compile_options(golden_programs PRIVATE ${ANNULUS_TEST_OPTIONS})
annulus_warnings(golden_programs)

annulus_test(golden LABEL device SIMULATED LIBRARIES annulus_golden SOURCES golden/golden_test.cc)
target_compile_definitions(test_golden PRIVATE ANNULUS_GOLDEN_PTX="${ANNULUS_GOLDEN_PTX}")

annulus_test(broken LABEL device SIMULATED LIBRARIES annulus_golden
  SOURCES broken/broken.cc broken/broken_test.cc)
target_compile_definitions(test_broken PRIVATE
  ANNULUS_BROKEN_KERNELS="${CMAKE_CURRENT_SOURCE_DIR}/broken")

# The vendor's assembler must accept every program: a definition of invalid PTX would prove nothing.
find_program(ANNULUS_PTXAS ptxas HINTS /usr/local/cuda/bin)
if(ANNULUS_PTXAS)
  add_test(NAME golden_assembles
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:golden_programs> -DPTXAS=${ANNULUS_PTXAS}
            -DFOLDER=${CMAKE_CURRENT_BINARY_DIR}/golden_ptx
            -P ${CMAKE_CURRENT_SOURCE_DIR}/golden/assemble.cmake)
  set_tests_properties(golden_assembles PROPERTIES LABELS unit)
endif()

# Runs all of them, including tensor maps and clusters, through the simulator's libcuda.so.1.
add_test(NAME libcuda_golden COMMAND golden_programs --device cuda:8)
set_tests_properties(libcuda_golden PROPERTIES LABELS unit ENVIRONMENT_MODIFICATION
  "ANNULUS_LIBRARY_PATH=path_list_prepend:$<TARGET_FILE_DIR:annulus_libcuda>")

# A process that ended during a program leaves the program's name. The next process records it and
# runs the other programs.
add_test(NAME golden_goes_on COMMAND bash -c
  "rm -f \"$1\"*; echo redux.sync.add.u32 >\"$1.running\"
   \"$0\" --only .add.u32 --go-on \"$1\" && grep -q 'redux.sync.add.u32: did not end' \"$1\" &&
   [ $(grep -o '\"status\":\"ok\"' \"$1\" | wc -l) -ge 3 ] && [ ! -e \"$1.running\" ] && cp \"$1\" \"$1.first\" &&
   \"$0\" --only .add.u32 --go-on \"$1\" && cmp \"$1\" \"$1.first\""
  $<TARGET_FILE:golden_programs> ${CMAKE_CURRENT_BINARY_DIR}/golden_goes_on)
set_tests_properties(golden_goes_on PROPERTIES LABELS unit)
