# The first kernels for a GPU, which tools/gpu_check runs one by one; here all of them on a
# simulated one.
file(GLOB micro_kernels CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/micro/*.cu)
annulus_embed(OUTPUT micro_embedded NAME micro ROOT ${CMAKE_CURRENT_SOURCE_DIR}/micro
  FILES ${micro_kernels})
add_executable(micro_tests micro/barriers.cc micro/bench.cc micro/boxes.cc micro/micro_tests.cc
  micro/products.cc ${micro_embedded})
target_include_directories(micro_tests PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(micro_tests PRIVATE annulus_test_problems annulus_api nlohmann_json::nlohmann_json)
target_link_options(micro_tests PRIVATE ${ANNULUS_PORTABLE_LINK})
annulus_warnings(micro_tests)
annulus_unity(micro_tests)
annulus_precompile(micro_tests FROM annulus_program)
annulus_opens_simulator(micro_tests)
if(NOT ANNULUS_SIMULATOR)
  return()
endif()
add_test(NAME micro COMMAND micro_tests --device sim:sm_90a)
set_tests_properties(micro PROPERTIES LABELS device TIMEOUT 900
  ENVIRONMENT "ANNULUS_CACHE_DIR=${PROJECT_BINARY_DIR}/test_cache;ANNULUS_TUNED=${PROJECT_BINARY_DIR}/test_tuned")
