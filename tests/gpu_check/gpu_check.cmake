# Tests of tools/gpu_check: its program with steps that fail, and the script on simulated devices.
annulus_test(gpu_check FULL LABEL unit LIBRARIES annulus_gpu_check annulus_base SEPARATE SOURCES gpu_check/gpu_check_test.cc)
if(NOT ANNULUS_SIMULATOR OR NOT ANNULUS_BENCH)
  return()
endif()

# If the driver that it finds is the simulator's, it reports no results.
add_test(NAME gpu_check_refused COMMAND bash -c
  "text=$(\"$0\" right --build \"$2\" --output \"$1\" 2>&1); [ $? = 3 ] && grep -q 'is simulated' <<<\"$text\" && [ ! -e \"$1\" ]"
  ${PROJECT_SOURCE_DIR}/tools/gpu_check ${PROJECT_BINARY_DIR}/gpu_check_refused ${PROJECT_BINARY_DIR})
set_tests_properties(gpu_check_refused PROPERTIES LABELS device RESOURCE_LOCK gpu_kit
  ENVIRONMENT_MODIFICATION "ANNULUS_LIBRARY_PATH=path_list_prepend:${PROJECT_BINARY_DIR}/simulator")

# Runs the beginning of both calls. Every micro test must pass, no step may fail, and timings must
# exist.
add_test(NAME gpu_check_rehearsal COMMAND bash -c
  "rm -rf \"$1\"; \"$0\" six --rehearse --seconds 60 --tune-seconds 0 --build \"$2\" --output \"$1\" &&
   [ $(grep -c '\"step\":\"micro .*\"outcome\":\"pass\"' \"$1/right.jsonl\") = $(\"$2/tests/micro_tests\" --list | wc -l) ] &&
   grep -q '\"programs\":{' \"$1/fast.jsonl\" && grep -q '\"rehearsal\":true' \"$1/right.jsonl\""
  ${PROJECT_SOURCE_DIR}/tools/gpu_check ${PROJECT_BINARY_DIR}/gpu_check_rehearsal ${PROJECT_BINARY_DIR})
set_tests_properties(gpu_check_rehearsal PROPERTIES LABELS device TIMEOUT 200 RESOURCE_LOCK gpu_kit
  ENVIRONMENT "ANNULUS_CACHE_DIR=${ANNULUS_TEST_CACHE}")
