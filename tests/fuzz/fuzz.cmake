# Fuzz targets. Each is built as fuzz_NAME with libFuzzer (-DANNULUS_FUZZ=ON, clang), which makes
# inputs endlessly, or as replay_NAME with replay.cc, which runs the inputs of NAME.corpus. The
# latter is the regression test of what campaigns have found.
#
#   annulus_fuzz(NAME LIBRARIES target...)     the target is NAME.cc, with all files of the folder
#                                              NAME if there is one; NAME_mutator.cc, if there is
#                                              one, changes inputs for libFuzzer
if(ANNULUS_FUZZ AND NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "annulus: ANNULUS_FUZZ needs libFuzzer, which is clang's: configure an empty build folder with "
    "CXX=clang++-16 CC=clang-16 cmake --preset fuzz")
endif()

if(NOT ANNULUS_FUZZ)
  add_library(annulus_fuzz_replay OBJECT fuzz/replay.cc)
  target_include_directories(annulus_fuzz_replay PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(annulus_fuzz_replay PUBLIC annulus_base)
  target_compile_options(annulus_fuzz_replay PRIVATE ${ANNULUS_TEST_OPTIONS})
  annulus_warnings(annulus_fuzz_replay)

  # Tests of replay.cc itself, and of the campaigns that unpack a corpus for libFuzzer.
  add_executable(replay_test fuzz/replay_test.cc)
  target_include_directories(replay_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(replay_test PRIVATE annulus_fuzz_replay)
  annulus_warnings(replay_test)
  add_test(NAME fuzz_replay COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/replay_test $<TARGET_FILE:replay_test>
    ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/fuzz_replay)
  set_tests_properties(fuzz_replay PROPERTIES LABELS unit)
endif()

function(annulus_fuzz name)
  cmake_parse_arguments(FUZZ "OPENS_SIMULATOR" "" "LIBRARIES" ${ARGN})
  if(ANNULUS_FUZZ)
    set(program fuzz_${name})
  else()
    set(program replay_${name})
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/${name}/*.cc)
  add_executable(${program} fuzz/${name}.cc ${sources})
  if(sources)
    annulus_unity(${program})
  endif()
  target_include_directories(${program} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${program} PRIVATE ${FUZZ_LIBRARIES})
  annulus_warnings(${program})
  if(FUZZ_OPENS_SIMULATOR)
    annulus_opens_simulator(${program})
  endif()
  if(ANNULUS_FUZZ)
    target_link_options(${program} PRIVATE -fsanitize=fuzzer)
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/${name}_mutator.cc)
      target_sources(${program} PRIVATE fuzz/${name}_mutator.cc)
    endif()
    return()
  endif()
  target_link_libraries(${program} PRIVATE annulus_fuzz_replay)
  target_link_options(${program} PRIVATE ${ANNULUS_PORTABLE_LINK})
  target_compile_options(${program} PRIVATE ${ANNULUS_TEST_OPTIONS})
  add_test(NAME fuzz_${name} COMMAND ${program} ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/${name}.corpus)
  set_tests_properties(fuzz_${name} PROPERTIES LABELS unit TIMEOUT 300
    ENVIRONMENT "ANNULUS_CACHE_DIR=${ANNULUS_TEST_CACHE};ANNULUS_TUNED=${PROJECT_BINARY_DIR}/test_tuned")
endfunction()

annulus_fuzz(pattern LIBRARIES annulus_pattern)
annulus_fuzz(files LIBRARIES annulus_autotune annulus_layout annulus_planner)
annulus_fuzz(messages LIBRARIES annulus_exchange)
annulus_fuzz(score LIBRARIES annulus_attention_problem)
if(ANNULUS_SIMULATOR)
  annulus_fuzz(ptx LIBRARIES annulus_simulator)
  annulus_fuzz(shapes OPENS_SIMULATOR LIBRARIES annulus_test_problems annulus_api)
  annulus_fuzz(c_calls OPENS_SIMULATOR LIBRARIES annulus_c_api)
  if(TARGET annulus_program_input)
    annulus_fuzz(shape_lines LIBRARIES annulus_program_input annulus_api)
  endif()
endif()
