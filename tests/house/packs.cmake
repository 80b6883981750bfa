# Packs with a prediction must not ship. The rule of tools/cmake/packs.cmake rejects a pack that was
# exported from a simulated device. It accepts the same results if they are marked as measured.
#
#   cmake -DROOT=<tree> -DWORK=scratch folder -P packs.cmake
cmake_minimum_required(VERSION 3.25)
set(predicted ${ROOT}/tests/house/predicted.pack)

function(checked pack expected)
  execute_process(COMMAND ${CMAKE_COMMAND} -DPACKS=${pack} -P ${ROOT}/tools/cmake/packs.cmake
    RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE text)
  string(REGEX REPLACE "[ \n]+" " " text "${text}")
  if(expected STREQUAL "accepted" AND NOT code EQUAL 0)
    message(SEND_ERROR "${pack} is refused: ${text}")
  elseif(NOT expected STREQUAL "accepted" AND (code EQUAL 0 OR NOT text MATCHES "${expected}"))
    message(SEND_ERROR "${pack} is not refused with '${expected}': ${code} ${text}")
  endif()
endfunction()

file(MAKE_DIRECTORY ${WORK})
file(READ ${predicted} text)
string(REPLACE "\"predicted\":true" "\"predicted\":false" half "${text}")
string(REPLACE ", simulated\"" ", measured\"" measured "${half}")
file(WRITE ${WORK}/half.pack "${half}")
file(WRITE ${WORK}/measured.pack "${measured}")
file(WRITE ${WORK}/other.pack "#!/bin/sh\n")
file(WRITE ${WORK}/silent.pack "annulus-tuned-pack 4 0\n{}\n")
checked(${predicted} "holds predictions")
checked(${WORK}/half.pack "holds predictions")
checked(${WORK}/silent.pack "holds predictions")
checked(${WORK}/other.pack "is not a pack")
checked(${WORK}/measured.pack accepted)
file(GLOB shipped ${ROOT}/src/tuned/packs/*.pack)
foreach(pack IN LISTS shipped)
  checked(${pack} accepted)
endforeach()
