# Configures a project that contains annulus by add_subdirectory. It fails if annulus changed
# settings of that project. With MAKE=1 it also builds and runs a program of that project, which
# takes minutes.
#
#   cmake -DANNULUS=repository -DWORK=scratch folder -DCC=compiler -DCXX=compiler
#     [-DLAUNCHER=ccache] [-DMAKE=1] -P subproject_test.cmake
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "failed (${code}): ${ARGV}\n${text}")
  endif()
  set(output "${text}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
# No build type is set: that is the containing project's choice, and must stay unset.
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${WORK} -G Ninja -DANNULUS=${ANNULUS}
    -DCMAKE_C_COMPILER=${CC} -DCMAKE_CXX_COMPILER=${CXX}
    -DCMAKE_C_COMPILER_LAUNCHER=${LAUNCHER} -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER})
file(STRINGS ${WORK}/CMakeCache.txt type REGEX "^CMAKE_BUILD_TYPE:[A-Z]+=.+")
if(type)
  message(FATAL_ERROR "annulus chose a build type for the project that holds it: ${type}")
endif()
if(MAKE)
  run(${CMAKE_COMMAND} --build ${WORK} --target holder)
  run(${WORK}/holder)
  if(NOT output MATCHES "causal.*nonsense")
    message(FATAL_ERROR "the program printed: ${output}")
  endif()
endif()
