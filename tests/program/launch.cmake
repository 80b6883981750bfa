# Starts a program once for each rank, all at once, with the variables that torchrun sets. Each
# process must exit with 0, and its output must begin with its rank, "rank 2 of 3", and match
# PATTERN.
#
#   cmake -DPROGRAM=example_ring_rank -DRANKS=3 -DPATTERN=... -DWORK=folder -P launch.cmake
cmake_minimum_required(VERSION 3.25)
math(EXPR last "${RANKS} - 1")
file(MAKE_DIRECTORY ${WORK})
foreach(attempt RANGE 4)
  string(RANDOM LENGTH 4 ALPHABET 0123456789 port)
  # CMake starts the parts of a pipeline together. Their output goes to files.
  set(commands "")
  foreach(rank RANGE ${last})
    list(APPEND commands COMMAND ${CMAKE_COMMAND} -E env RANK=${rank} LOCAL_RANK=${rank} WORLD_SIZE=${RANKS}
      MASTER_ADDR=127.0.0.1 MASTER_PORT=2${port} TORCHELASTIC_RUN_ID=${port}
      sh -c "exec \"$0\" >\"$1\"" ${PROGRAM} ${WORK}/rank-${rank})
  endforeach()
  execute_process(${commands} RESULTS_VARIABLE codes ERROR_VARIABLE errors TIMEOUT 120)
  if(NOT errors MATCHES "cannot listen on")
    break()  # otherwise another program has the port
  endif()
endforeach()
set(wrong "")
foreach(rank RANGE ${last})
  file(READ ${WORK}/rank-${rank} text)
  if(NOT text MATCHES "^rank ${rank} of ${RANKS} .*${PATTERN}")
    string(APPEND wrong "rank ${rank} printed '${text}'\n")
  endif()
endforeach()
if(NOT codes MATCHES "^0(;0)*$" OR NOT wrong STREQUAL "")
  message(FATAL_ERROR "the ranks ended with ${codes}\n${wrong}${errors}")
endif()
