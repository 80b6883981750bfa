# Tries gpu_bench on a simulated device, with a peer that answers in words alone: what it writes must
# be there, and must say that its times are simulated.
#
#   cmake -DPROGRAM=gpu_bench -DFOLDER=folder -P gpu_bench_test.cmake
set(peer ${FOLDER}/gpu_bench_peer.sh)
file(WRITE ${peer} [=[
echo '{"version": "a peer of words", "backends": ["steady", "none"]}'
while read -r ask; do
  case $ask in
    *'"backend":"steady"'*) echo '{"ms": [2, 3, 1]}' ;;
    *) echo '{"error": "has no such kernel"}' ;;
  esac
done
]=])
set(output ${FOLDER}/gpu_bench_test.json)
file(REMOVE ${output})
execute_process(COMMAND ${PROGRAM} --tiny --device sim:sm_90a --rounds 2 --runs 1 --commit tried
    --peers "sh ${peer}" --output ${output}
  RESULT_VARIABLE code OUTPUT_VARIABLE table ERROR_VARIABLE error)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "gpu_bench exits with ${code}: ${error}")
endif()
if(NOT table MATCHES "simulated times" OR NOT table MATCHES "none: has no such kernel")
  message(FATAL_ERROR "the table does not say what was measured:\n${table}")
endif()

# is(WANTED PATH...): a value of the JSON file.
file(READ ${output} json)
function(is wanted)
  string(JSON value GET "${json}" ${ARGN})
  if(NOT value STREQUAL wanted)
    message(FATAL_ERROR "${ARGN} is '${value}', not '${wanted}'")
  endif()
endfunction()
is(ON simulated)
is("simulated times, no GPU was measured" kind)
is("a peer of words" peers)
is(2 rounds)
is("D128 256 full" problems 0 name)
is(2.0 problems 0 programs steady warm_ms 0)
is("has no such kernel" problems 0 programs none error)
string(JSON count LENGTH "${json}" problems)
math(EXPR last "${count} - 1")
foreach(index RANGE ${last})
  foreach(kind warm_ms cold_ms)
    string(JSON rounds LENGTH "${json}" problems ${index} programs annulus ${kind})
    if(NOT rounds EQUAL 2)
      message(FATAL_ERROR "problem ${index} has ${rounds} rounds of ${kind}")
    endif()
  endforeach()
  string(JSON config GET "${json}" problems ${index} config)
  if(NOT config MATCHES "^w?g?mma ")
    message(FATAL_ERROR "problem ${index} ran with '${config}'")
  endif()
endforeach()
