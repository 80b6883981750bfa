# Every header of C++ reports a compiler of an older standard before any other error.
#
#   cmake -DROOT=source tree -DCXX=compiler -P standard.cmake
file(GLOB headers RELATIVE ${ROOT}/include ${ROOT}/include/annulus/*.h)
foreach(header IN LISTS headers)
  # Headers of C may be included in C++ of any standard.
  if(header MATCHES "annulus/(c|c_[a-z_]+|version|simulator)\\.h$")
    continue()
  endif()
  execute_process(
    COMMAND ${CXX} -std=c++17 -fsyntax-only -Wfatal-errors -I${ROOT}/include -include ${header} -x c++ /dev/null
    RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(code EQUAL 0 OR NOT text MATCHES "annulus needs C\\+\\+20")
    message(SEND_ERROR "${header} as C++17 (${code}): ${text}")
  endif()
endforeach()
