# Installs the build tree into a folder of its own, moves that folder, and builds and runs the
# consumer project against it, by find_package and (where it is installed) by pkg-config.
#
#   cmake -DBUILD=build tree -DWORK=scratch folder -DCC=compiler -DCXX=compiler
#     [-DC_FLAGS=... -DCXX_FLAGS=...] -DEXAMPLE=examples/window.c -P consumer_test.cmake
#
# The flags are those of the build tree: a sanitizer wants to be in the program as well.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "failed (${code}): ${ARGV}\n${text}")
  endif()
  set(output "${text}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/installed)
file(RENAME ${WORK}/installed ${WORK}/moved)

run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${WORK}/build -G Ninja
    -DCMAKE_C_COMPILER=${CC} -DCMAKE_CXX_COMPILER=${CXX} -DEXAMPLE=${EXAMPLE}
    "-DCMAKE_C_FLAGS=${C_FLAGS}" "-DCMAKE_CXX_FLAGS=${CXX_FLAGS}"
    -DCMAKE_PREFIX_PATH=${WORK}/moved)
file(STRINGS ${WORK}/build/CMakeCache.txt found REGEX "^annulus_DIR:PATH=${WORK}/moved/")
if(NOT found)
  message(FATAL_ERROR "find_package(annulus) found another copy than the one just installed")
endif()
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/consumer)
if(NOT output MATCHES "causal.*nonsense")
  message(FATAL_ERROR "the consumer printed: ${output}")
endif()

run(${CMAKE_COMMAND} -E env ANNULUS_DEVICE=sim:sm_80 ANNULUS_CACHE_DIR=${BUILD}/test_cache
    ${WORK}/build/window)
if(NOT output MATCHES "0x4000")
  message(FATAL_ERROR "the example in C printed: ${output}")
endif()

# A program asking for another major version must be refused.
file(WRITE ${WORK}/wrong/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)\nproject(wrong NONE)\n"
  "find_package(annulus 99 CONFIG REQUIRED)\n")
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${WORK}/wrong -B ${WORK}/wrong/build -G Ninja
          -DCMAKE_PREFIX_PATH=${WORK}/moved
  RESULT_VARIABLE code OUTPUT_QUIET ERROR_QUIET)
if(code EQUAL 0)
  message(FATAL_ERROR "version 99 was accepted")
endif()

find_program(PKG_CONFIG pkg-config)
if(PKG_CONFIG)
  file(GLOB_RECURSE description ${WORK}/moved/annulus.pc)
  get_filename_component(folder ${description} DIRECTORY)
  run(${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${folder} ${PKG_CONFIG} --cflags --libs annulus)
  separate_arguments(flags UNIX_COMMAND "${output}")
  separate_arguments(c_flags UNIX_COMMAND "${C_FLAGS}")
  separate_arguments(cxx_flags UNIX_COMMAND "${CXX_FLAGS}")
  run(${CXX} -std=c++20 ${cxx_flags} ${CMAKE_CURRENT_LIST_DIR}/main.cc -o ${WORK}/by_pkg_config ${flags})
  run(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${folder}/.. ${WORK}/by_pkg_config)
  run(${CC} -std=c99 -pedantic -Werror ${c_flags} ${EXAMPLE} -o ${WORK}/c_by_pkg_config ${flags})
endif()
