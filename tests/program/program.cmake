if(TARGET annulus_program)
  # The program is linked like a program of a user, so it can use only public functions.
  # tests/house/includes.cmake checks its includes in the same way.
  foreach(case "annulus_program|annulus_program_input;annulus_program_report;annulus::annulus"
          "annulus_program_input|annulus_base" "annulus_program_report|annulus_base")
    string(REGEX MATCH "^[^|]+" target "${case}")
    string(REGEX REPLACE "^[^|]+[|]" "" allowed "${case}")
    get_target_property(linked ${target} LINK_LIBRARIES)
    list(FILTER linked INCLUDE REGEX "^annulus")
    if(NOT linked STREQUAL allowed)
      message(FATAL_ERROR "${target} links ${linked}; it may link ${allowed}")
    endif()
  endforeach()
  annulus_test(program LABEL unit LIBRARIES annulus_base annulus_layout annulus_program_report SOURCES
    program/batch_program_test.cc
    program/go_on_program_test.cc
    program/help_program_test.cc
    program/launcher_program_test.cc
    program/pattern_program_test.cc
    program/program_test.cc
    program/report_page_test.cc
    program/stopped_program_test.cc
    program/tune_program_test.cc
    program/warm_program_test.cc
    SLOW program/stopped_program_test.cc program/tune_program_test.cc)
  target_compile_definitions(test_program PRIVATE
    ANNULUS_PROGRAM="$<TARGET_FILE:annulus_program>"
    ANNULUS_TEMPLATES="${PROJECT_SOURCE_DIR}/templates"
    ANNULUS_USELESS_NVRTC_FOLDER="$<TARGET_FILE_DIR:fake_nvrtc_toolkit>")
  add_dependencies(test_program annulus_program fake_nvrtc_toolkit)

  # Runs a kernel of each family with the simulator's libcuda.so.1, in the way of a GPU. This covers
  # tensor maps, mbarriers, clusters (two heads that share K and V), and the oracle at the end.
  foreach(case "mma|mma m64 n64 w4 s2|bf16" "wgmma|wgmma m128 n64 w8 s2|bf16"
          "wgmma_cluster|wgmma m128 n64 w8 s2 c2|bf16" "wgmma8|wgmma8 m128 n64 w8 s2|e4m3")
    string(REPLACE "|" ";" case "${case}")
    list(GET case 0 name)
    list(GET case 1 config)
    list(GET case 2 dtype)
    add_test(NAME libcuda_${name} COMMAND annulus_program run --device cuda:8 --dtype ${dtype}
      --config ${config} -H 2 --kv-heads 1 -S 300 --seq-k 400 -D 64 -p causal)
    set_tests_properties(libcuda_${name} PROPERTIES LABELS unit
      PASS_REGULAR_EXPRESSION "configuration ${config}.*within tolerance"
      ENVIRONMENT "ANNULUS_CACHE_DIR=${ANNULUS_TEST_CACHE}"
      ENVIRONMENT_MODIFICATION
      "ANNULUS_LIBRARY_PATH=path_list_prepend:$<TARGET_FILE_DIR:annulus_libcuda>")
  endforeach()

  # A ring uses the available GPUs, in one process and in several.
  foreach(case "ring" "ring_of_processes|--processes")
    string(REPLACE "|" ";" case "${case}")
    list(POP_FRONT case name)
    add_test(NAME libcuda_${name} COMMAND annulus_program run --device cuda --ranks 3 ${case} --json
      -H 2 -S 300 -D 64 -p causal)
    set_tests_properties(libcuda_${name} PROPERTIES LABELS unit
      PASS_REGULAR_EXPRESSION "cuda:0\",[ \n]*\"cuda:1\",[ \n]*\"cuda:2\".*within_law\": true"
      ENVIRONMENT "ANNULUS_CACHE_DIR=${ANNULUS_TEST_CACHE}"
      ENVIRONMENT_MODIFICATION
      "ANNULUS_LIBRARY_PATH=path_list_prepend:$<TARGET_FILE_DIR:annulus_libnccl>;ANNULUS_LIBRARY_PATH=path_list_prepend:$<TARGET_FILE_DIR:annulus_libcuda>")
  endforeach()
endif()
