# In each pass of a public flow something fails. Here a few passes of each flow run. tools/campaign
# runs all of them.
set(faults ${CMAKE_CURRENT_LIST_DIR})

# The flows, which are compiled once.
add_library(fault_flows STATIC ${faults}/flows.cc)
target_include_directories(fault_flows PUBLIC ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(fault_flows PUBLIC annulus)
annulus_warnings(fault_flows)
annulus_precompile(fault_flows FROM annulus_base)

# fault_program(NAME SOURCE...): a program that uses the public library.
function(fault_program name)
  list(TRANSFORM ARGN PREPEND ${faults}/)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE fault_flows ${CMAKE_DL_LIBS})
  annulus_warnings(${name})
  annulus_unity(${name})
  annulus_precompile(${name} FROM micro_tests)
  annulus_opens_simulator(${name})
endfunction()

# fault_test(NAME ARGUMENT...): a test with a few passes of that program.
function(fault_test name)
  add_test(NAME ${name} COMMAND ${name} ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 300)
endfunction()

# Allocations. The program replaces malloc, and so do the sanitizers.
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  fault_program(fault_allocations allocations.cc failing_malloc.cc)
  fault_test(fault_allocations --for 40 --points 25 --seed 1
    --cache ${ANNULUS_TEST_CACHE} --flow open --flow plan_memory --flow plan_disk
    --flow run --flow prefetch --flow ring --flow import)
endif()

# Threads that begin while memory is exhausted, in a program without the C++ library.
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  add_executable(fault_exhausted ${faults}/exhausted.c)
  target_include_directories(fault_exhausted PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(fault_exhausted PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  add_dependencies(fault_exhausted annulus)
  annulus_warnings(fault_exhausted)
  fault_test(fault_exhausted $<TARGET_FILE:annulus>)
endif()

# Calls of the driver and of NVRTC. Libraries that can make them fail replace the real ones. The
# program uses libannulus.so through a link in the folder of these libraries, because the simulator
# is searched there first.
set(failing_folder ${PROJECT_BINARY_DIR}/tests/failing)
file(MAKE_DIRECTORY ${failing_folder})
foreach(library driver nvrtc)
  add_library(failing_${library} MODULE ${faults}/failing_${library}.cc)
  target_include_directories(failing_${library} PRIVATE ${PROJECT_SOURCE_DIR}/tests
    ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include
    ${PROJECT_SOURCE_DIR}/tools/simulator/src ${PROJECT_SOURCE_DIR}/tools/simulator/include
    ${PROJECT_BINARY_DIR}/generated)
  target_compile_features(failing_${library} PRIVATE cxx_std_20)
  target_link_libraries(failing_${library} PRIVATE ${CMAKE_DL_LIBS})
  annulus_warnings(failing_${library})
  set_target_properties(failing_${library} PROPERTIES PREFIX "" NO_SONAME ON
    CXX_VISIBILITY_PRESET hidden LIBRARY_OUTPUT_DIRECTORY ${failing_folder})
endforeach()
target_compile_definitions(failing_driver PRIVATE
  ANNULUS_SIMULATOR_FILE="$<TARGET_FILE:annulus_simulator_shared>")
fault_program(fault_driver_calls driver_calls.cc)
target_compile_definitions(fault_driver_calls PRIVATE ANNULUS_FAILING_FOLDER="${failing_folder}")
add_dependencies(fault_driver_calls failing_driver failing_nvrtc)
set_target_properties(fault_driver_calls PROPERTIES BUILD_RPATH ${failing_folder})
foreach(link "$<TARGET_SONAME_FILE:annulus>|$<TARGET_SONAME_FILE_NAME:annulus>"
    "failing_driver.so|$<TARGET_SONAME_FILE_NAME:annulus_simulator_shared>"
    "failing_nvrtc.so|libnvrtc.so.13")
  string(REPLACE "|" ";" link "${link}")
  list(GET link 0 file)
  list(GET link 1 name)
  add_custom_command(TARGET fault_driver_calls POST_BUILD
    COMMAND ${CMAKE_COMMAND} -E create_symlink ${file} ${failing_folder}/${name})
endforeach()
fault_test(fault_driver_calls --seed 1 --cache ${ANNULUS_TEST_CACHE}
  --flow open --flow plan_memory --flow run --flow prefetch)

# Calls of files. Functions of the program replace them.
fault_program(fault_file_calls file_calls.cc failing_files.cc)
fault_test(fault_file_calls --only-code 4 --cache ${ANNULUS_TEST_CACHE}
  --flow run --flow import --flow export)

# Forks, and dlopen.
fault_program(fault_forks forks.cc)
fault_test(fault_forks --children 40 --cache ${ANNULUS_TEST_CACHE})
fault_program(fault_reload reload.cc)
fault_test(fault_reload $<TARGET_FILE:annulus> --rounds 20 --cache ${ANNULUS_TEST_CACHE})

# Folders with unexpected contents or permissions.
fault_program(fault_folders folders.cc)
fault_test(fault_folders --entries 300 --cache ${ANNULUS_TEST_CACHE}
  --only "results: a pipe" --only "results: pipes for entries" --only "results: a link to itself"
  --only "results: links to /dev/zero for entries" --only "results: many entries"
  --only "results: sparse entries of 2^40 bytes" --only "results: names with line ends")

# Sizes at the edges of the integers.
fault_program(fault_sizes sizes.cc)
fault_test(fault_sizes --for 20 --passes 300 --seed 1 --cache ${ANNULUS_TEST_CACHE})
