# Tests of the repository: the floor plan, the text of the sources, the installed files, and the
# exports of the shared library. Each test is a CMake script, so it needs no further tool. Only
# gates.py, which reads all comments and documents, needs Python 3.

# Writes the floor plan to a file, with one line "room|folder|direct dependencies" per add_floor.
get_property(floors GLOBAL PROPERTY ANNULUS_FLOORS)
set(plan "")
foreach(room IN LISTS floors)
  get_property(folder GLOBAL PROPERTY ANNULUS_FLOOR_${room}_FOLDER)
  get_property(depends GLOBAL PROPERTY ANNULUS_FLOOR_${room}_DEPENDS)
  list(JOIN depends "," depends)
  string(APPEND plan "${room}|${folder}|${depends}\n")
endforeach()
file(WRITE ${PROJECT_BINARY_DIR}/generated/floors.txt "${plan}")

function(house_test name)
  add_test(NAME house_${name} COMMAND ${CMAKE_COMMAND} ${ARGN})
  set_tests_properties(house_${name} PROPERTIES LABELS house)
  if(NOT name MATCHES "^(called|consumer|subproject.*|arm)$")  # these tests build programs
    annulus_quick(TESTS house_${name})
  endif()
endfunction()

# Adds a test in Python. It is skipped on a machine without Python 3.
function(python_test name label)
  add_test(NAME ${name} COMMAND sh -c
    "command -v python3 >/dev/null || { echo 'skipped: there is no python3'; exit 77; }; exec python3 \"$@\""
    sh ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS ${label} SKIP_RETURN_CODE 77)
endfunction()

# Writes the compiler and the options that determine the size of the shared library, and its path.
# gates.py compares the size only with a gate of the same compiler and options.
set(toolchain ${CMAKE_CXX_COMPILER_ID}-${CMAKE_CXX_COMPILER_VERSION}-${CMAKE_SYSTEM_PROCESSOR}-${CMAKE_BUILD_TYPE})
if(ANNULUS_UNITY)
  string(APPEND toolchain -unity)
endif()
if(NOT ANNULUS_TUNER)
  string(APPEND toolchain -no_tuner)
endif()
if(NOT CMAKE_CXX_FLAGS STREQUAL "")
  string(APPEND toolchain -other_flags)
endif()
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/generated/gates_build.txt
  CONTENT "${toolchain}\n$<TARGET_FILE:annulus>\n")
python_test(house_gates house ${CMAKE_CURRENT_SOURCE_DIR}/house/gates.py --build ${PROJECT_BINARY_DIR})
annulus_quick(TESTS house_gates)

house_test(includes
  -DROOT=${PROJECT_SOURCE_DIR} -DPLAN=${PROJECT_BINARY_DIR}/generated/floors.txt
  -P ${CMAKE_CURRENT_SOURCE_DIR}/house/includes.cmake)
house_test(compilers -DROOT=${PROJECT_SOURCE_DIR}
  -P ${CMAKE_CURRENT_SOURCE_DIR}/house/compilers.cmake)
house_test(packs -DROOT=${PROJECT_SOURCE_DIR} -DWORK=${PROJECT_BINARY_DIR}/house_packs
  -P ${CMAKE_CURRENT_SOURCE_DIR}/house/packs.cmake)
house_test(text -DROOT=${PROJECT_SOURCE_DIR} -P ${CMAKE_CURRENT_SOURCE_DIR}/house/text.cmake)
house_test(documents
  -DROOT=${PROJECT_SOURCE_DIR} -P ${CMAKE_CURRENT_SOURCE_DIR}/house/documents.cmake)
house_test(gpu_lines -DROOT=${PROJECT_SOURCE_DIR} -P ${CMAKE_CURRENT_SOURCE_DIR}/house/gpu_lines.cmake)
house_test(engines -DROOT=${PROJECT_SOURCE_DIR} -P ${CMAKE_CURRENT_SOURCE_DIR}/house/engines.cmake)
house_test(backlog -DROOT=${PROJECT_SOURCE_DIR} -P ${CMAKE_CURRENT_SOURCE_DIR}/house/backlog.cmake)
house_test(performance
  -DCHECK=1 -DROOT=${PROJECT_SOURCE_DIR} -P ${PROJECT_SOURCE_DIR}/tools/bench/table.cmake)
house_test(checks
  -DWORK=${PROJECT_BINARY_DIR}/house_checks -P ${CMAKE_CURRENT_SOURCE_DIR}/house/checks_test.cmake)
house_test(symbols
  -DLIBRARY=$<TARGET_FILE:annulus> -DNM=${CMAKE_NM}
  -P ${CMAKE_CURRENT_SOURCE_DIR}/house/symbols.cmake)
house_test(standard -DROOT=${PROJECT_SOURCE_DIR} -DCXX=${CMAKE_CXX_COMPILER}
  -P ${CMAKE_CURRENT_SOURCE_DIR}/house/standard.cmake)
set(simulator_example "")
if(ANNULUS_SIMULATOR)
  set(simulator_example -DSIMULATOR_EXAMPLE=${PROJECT_SOURCE_DIR}/docs/examples/simulator.c)
endif()
house_test(consumer ${simulator_example}
  -DBUILD=${PROJECT_BINARY_DIR} -DWORK=${PROJECT_BINARY_DIR}/consumer -DCACHE=${ANNULUS_TEST_CACHE}
  -DCC=${CMAKE_C_COMPILER} -DCXX=${CMAKE_CXX_COMPILER}
  "-DC_FLAGS=${CMAKE_C_FLAGS}" "-DCXX_FLAGS=${CMAKE_CXX_FLAGS}"
  -DEXAMPLE=${PROJECT_SOURCE_DIR}/docs/examples/window.c -P ${CMAKE_CURRENT_SOURCE_DIR}/consumer/consumer_test.cmake)

# The library as a part of another project. Tests that build the whole library again, in another
# project or for another processor, take minutes each. ANNULUS_SLOW_TESTS enables them.
set(subproject_tests subproject)
if(ANNULUS_SLOW_TESTS)
  list(APPEND subproject_tests subproject_build)
endif()
foreach(test IN LISTS subproject_tests)
  set(make "")
  if(test STREQUAL "subproject_build")
    set(make -DMAKE=1)
  endif()
  house_test(${test}
    -DANNULUS=${PROJECT_SOURCE_DIR} -DWORK=${PROJECT_BINARY_DIR}/${test}
    -DCC=${CMAKE_C_COMPILER} -DCXX=${CMAKE_CXX_COMPILER} "-DLAUNCHER=${ANNULUS_CCACHE}" ${make}
    -P ${CMAKE_CURRENT_SOURCE_DIR}/subproject/subproject_test.cmake)
endforeach()
if(ANNULUS_SLOW_TESTS)
  set_tests_properties(house_subproject_build PROPERTIES LABELS slow TIMEOUT 3000)
endif()

# A build for another processor, if there is a compiler for it.
find_program(ANNULUS_ARM_CC aarch64-linux-gnu-gcc)
find_program(ANNULUS_ARM_CXX aarch64-linux-gnu-g++)
find_path(ANNULUS_FMT_INCLUDE fmt/format.h)
find_path(ANNULUS_JSON_INCLUDE nlohmann/json.hpp)
if(ANNULUS_SLOW_TESTS AND ANNULUS_ARM_CC AND ANNULUS_ARM_CXX AND ANNULUS_FMT_INCLUDE AND ANNULUS_JSON_INCLUDE)
  house_test(arm -DANNULUS=${PROJECT_SOURCE_DIR} -DWORK=${PROJECT_BINARY_DIR}/arm
    -DCC=${ANNULUS_ARM_CC} -DCXX=${ANNULUS_ARM_CXX} "-DLAUNCHER=${ANNULUS_CCACHE}"
    -DFMT=${ANNULUS_FMT_INCLUDE} -DJSON=${ANNULUS_JSON_INCLUDE} -DXXHASH=${ANNULUS_XXHASH_INCLUDE}
    -P ${CMAKE_CURRENT_SOURCE_DIR}/subproject/arm_test.cmake)
  set_tests_properties(house_arm PROPERTIES LABELS slow TIMEOUT 3000)
endif()

# Shell scripts are checked if shellcheck is installed.
find_program(SHELLCHECK shellcheck)
if(SHELLCHECK)
  add_test(NAME house_scripts
    COMMAND ${SHELLCHECK} -x -e SC2034,SC2065,SC2119,SC2120 tools/test tools/demo tools/format tools/get_nvrtc tools/run_benches tools/gpu_check tools/get_nvdisasm
      tools/campaign tests/fuzz/replay_test tests/program/kill_processes .ci/run
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(house_scripts PROPERTIES LABELS house)
endif()

# A campaign continues after a failure, ends when the time is over, and keeps the command line that
# repeats the failure.
add_test(NAME house_campaign COMMAND bash -c
  "rm -rf \"$1\"; text=$(\"$0\" --for 20s --rounds 3 --seed 7 --output \"$1\" -- bash -c '[ {seed} != 8 ]');
   [ $? = 1 ] && grep -q 'command: 3 rounds, 0 cases, 1 failures' <<<\"$text\" &&
   [ -f \"$1/command-8.txt\" ] && [ ! -e \"$1/command-7.sh\" ] && ! \"$1/command-8.sh\" &&
   \"$0\" --for 20s --rounds 1 --output \"$1\" -- true && ! \"$0\" nonsense --for 1s 2>/dev/null"
  ${PROJECT_SOURCE_DIR}/tools/campaign ${PROJECT_BINARY_DIR}/campaign_check)
set_tests_properties(house_campaign PROPERTIES LABELS house)
