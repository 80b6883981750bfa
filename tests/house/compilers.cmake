# A compiler that is too old is rejected at configuration, with a message that names it and the
# accepted ones. Other compilers are accepted.
#
#   cmake -DROOT=<tree> -P compilers.cmake

function(configured id version expected)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -DCMAKE_CXX_COMPILER_ID=${id} -DCMAKE_CXX_COMPILER_VERSION=${version}
      -P ${ROOT}/tools/cmake/compilers.cmake
    RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE text)
  string(REGEX REPLACE "[ \n]+" " " text "${text}")
  if(expected STREQUAL "accepted" AND NOT code EQUAL 0)
    message(SEND_ERROR "${id} ${version} is refused: ${text}")
  elseif(expected STREQUAL "refused" AND (code EQUAL 0 OR
         NOT text MATCHES "${id} ${version} does not compile it; it needs g\\+\\+ 12 or clang 16"))
    message(SEND_ERROR "${id} ${version} is not refused by name: ${code} ${text}")
  endif()
endfunction()

configured(GNU 11.4.0 refused)
configured(GNU 12.2.0 accepted)
configured(GNU 14.1.0 accepted)
configured(Clang 14.0.6 refused)
configured(Clang 15.0.7 refused)
configured(Clang 16.0.0 accepted)
configured(IntelLLVM 2021.1 accepted)
