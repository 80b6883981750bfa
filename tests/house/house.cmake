# Tests of the house itself: the floor plan, the text of the sources, what is installed and what
# the shared library exports. Each is a CMake script, so that they need no further tool.

# The floor plan as a file: one line "room|folder|direct dependencies" per add_floor.
get_property(floors GLOBAL PROPERTY ANNULUS_FLOORS)
set(plan "")
foreach(room IN LISTS floors)
  get_property(folder GLOBAL PROPERTY ANNULUS_FLOOR_${room}_FOLDER)
  get_property(depends GLOBAL PROPERTY ANNULUS_FLOOR_${room}_DEPENDS)
  list(JOIN depends "," depends)
  string(APPEND plan "${room}|${folder}|${depends}\n")
endforeach()
file(WRITE ${PROJECT_BINARY_DIR}/generated/floors.txt "${plan}")

# The programs that tools/gpu_check runs on a real device, known when all tests are.
function(write_device_tests)
  get_property(programs GLOBAL PROPERTY ANNULUS_DEVICE_TESTS)
  file(WRITE ${PROJECT_BINARY_DIR}/generated/device_tests.txt "${programs}")
endfunction()
cmake_language(DEFER DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} CALL write_device_tests)

function(house_test name)
  add_test(NAME house_${name} COMMAND ${CMAKE_COMMAND} ${ARGN})
  set_tests_properties(house_${name} PROPERTIES LABELS house)
endfunction()

house_test(includes
  -DROOT=${PROJECT_SOURCE_DIR} -DPLAN=${PROJECT_BINARY_DIR}/generated/floors.txt
  -P ${CMAKE_CURRENT_SOURCE_DIR}/house/includes.cmake)
house_test(text -DROOT=${PROJECT_SOURCE_DIR} -P ${CMAKE_CURRENT_SOURCE_DIR}/house/text.cmake)
house_test(documents
  -DROOT=${PROJECT_SOURCE_DIR} -P ${CMAKE_CURRENT_SOURCE_DIR}/house/documents.cmake)
house_test(performance
  -DCHECK=1 -DROOT=${PROJECT_SOURCE_DIR} -P ${PROJECT_SOURCE_DIR}/bench/table.cmake)
house_test(checks
  -DWORK=${PROJECT_BINARY_DIR}/house_checks -P ${CMAKE_CURRENT_SOURCE_DIR}/house/checks_test.cmake)
house_test(symbols
  -DLIBRARY=$<TARGET_FILE:annulus> -DNM=${CMAKE_NM}
  -P ${CMAKE_CURRENT_SOURCE_DIR}/house/symbols.cmake)
house_test(consumer
  -DBUILD=${PROJECT_BINARY_DIR} -DWORK=${PROJECT_BINARY_DIR}/consumer
  -DCC=${CMAKE_C_COMPILER} -DCXX=${CMAKE_CXX_COMPILER}
  "-DC_FLAGS=${CMAKE_C_FLAGS}" "-DCXX_FLAGS=${CMAKE_CXX_FLAGS}"
  -DEXAMPLE=${PROJECT_SOURCE_DIR}/examples/window.c -P ${CMAKE_CURRENT_SOURCE_DIR}/consumer/consumer_test.cmake)

# Shell scripts, where there is a tool that knows them.
find_program(SHELLCHECK shellcheck)
if(SHELLCHECK)
  add_test(NAME house_scripts
    COMMAND ${SHELLCHECK} -x -e SC2034,SC2065,SC2119,SC2120 tools/test tools/demo tools/format tools/get_nvrtc tools/bench tools/gpu_check tools/get_nvdisasm .ci/run
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(house_scripts PROPERTIES LABELS house)
endif()

# gpu_check says nothing about silicon when the driver that it finds is the simulator's.
add_test(NAME house_gpu_check COMMAND bash -c
  "text=$(\"$0\" --build \"$2\" --output \"$1\" 2>&1); [ $? = 3 ] && grep -q 'is simulated' <<<\"$text\""
  ${PROJECT_SOURCE_DIR}/tools/gpu_check ${PROJECT_BINARY_DIR}/gpu_check_refused ${PROJECT_BINARY_DIR})
set_tests_properties(house_gpu_check PROPERTIES LABELS house
  ENVIRONMENT_MODIFICATION "ANNULUS_LIBRARY_PATH=path_list_prepend:${PROJECT_BINARY_DIR}/simulator")
