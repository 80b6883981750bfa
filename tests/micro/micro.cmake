# The first kernels for a GPU. tools/gpu_check runs them one by one. Here all of them run on a
# simulated GPU.
file(GLOB micro_kernels CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/micro/*.cu)
annulus_embed(OUTPUT micro_embedded NAME micro ROOT ${CMAKE_CURRENT_SOURCE_DIR}/micro
  FILES ${micro_kernels})
add_executable(micro_tests micro/barriers.cc micro/bench.cc micro/boxes.cc micro/micro_tests.cc
  micro/products.cc micro/rows.cc ${PROJECT_SOURCE_DIR}/tools/bench/ahead_kernels.cc
  ${micro_embedded})
target_include_directories(micro_tests PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}
  ${PROJECT_SOURCE_DIR}/tools/bench)
target_link_libraries(micro_tests PRIVATE annulus_test_problems annulus_api nlohmann_json::nlohmann_json)
target_link_options(micro_tests PRIVATE ${ANNULUS_PORTABLE_LINK})
annulus_warnings(micro_tests)
annulus_unity(micro_tests)
# Other programs that are compiled with -O2 share this precompiled header. The program annulus is
# compiled with -Og, and g++ needs the same option for sharing.
annulus_precompile(micro_tests HEADERS ${ANNULUS_COMMON_HEADERS} <nlohmann/json.hpp>)
annulus_opens_simulator(micro_tests)
if(NOT ANNULUS_SIMULATOR)
  return()
endif()
# Simulates a GPU without NVRTC: all kernels were compiled ahead, and none is compiled at run time.
set(micro_folder ${PROJECT_BINARY_DIR}/micro_kernels)
add_test(NAME micro_ahead
  COMMAND micro_tests --compile-into ${micro_folder} --device sim:sm_90a)
add_test(NAME micro COMMAND micro_tests --device sim:sm_90a)
set_tests_properties(micro_ahead PROPERTIES FIXTURES_SETUP micro_kernels)
set_tests_properties(micro PROPERTIES FIXTURES_REQUIRED micro_kernels ENVIRONMENT
  "ANNULUS_KERNELS=${micro_folder};ANNULUS_COMPILE=never;ANNULUS_CACHE_DIR=none;ANNULUS_TUNED=${PROJECT_BINARY_DIR}/test_tuned")
set_tests_properties(micro_ahead micro PROPERTIES LABELS device TIMEOUT 900)
