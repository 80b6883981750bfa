# Tests that use the library as a user's program does: public headers and libannulus.so.
annulus_test(outside LABEL unit LIBRARIES annulus SOURCES outside/outside.cc
  outside/append_test.cc outside/batch_test.cc outside/communicator_test.cc outside/device_test.cc outside/installation_test.cc outside/join_test.cc outside/kernels_test.cc outside/layouts_test.cc
  outside/merge_test.cc outside/metrics_test.cc outside/models_test.cc outside/patterns_test.cc outside/rendezvous_test.cc outside/ring_test.cc outside/tuned_pack_test.cc ALONE outside/metrics_test.cc)
target_link_libraries(test_outside PRIVATE nlohmann_json::nlohmann_json ${CMAKE_DL_LIBS})
# All of these tests run under a profiler that takes ranges.
add_library(annulus_test_profiler MODULE outside/nvtx_profiler.c)
annulus_warnings(annulus_test_profiler)
add_dependencies(test_outside annulus_test_profiler)
set_property(TEST outside APPEND PROPERTY ENVIRONMENT
  NVTX_INJECTION64_PATH=$<TARGET_FILE:annulus_test_profiler>)
# A CUDA driver with devices: the simulator as libcuda.so.1.
target_compile_definitions(test_outside PRIVATE
  ANNULUS_LIBCUDA_FOLDER="$<TARGET_FILE_DIR:annulus_libcuda>"
  ANNULUS_USELESS_NVRTC_FOLDER="$<TARGET_FILE_DIR:fake_nvrtc_toolkit>")
add_dependencies(test_outside annulus_libcuda fake_nvrtc_toolkit)

# Every public function of C++ and of C is called from one of these programs or the examples.
house_test(called
  -DLIBRARY=$<TARGET_FILE:annulus> -DNM=${CMAKE_NM}
  "-DPROGRAMS=$<TARGET_FILE:test_outside>|$<TARGET_FILE:test_c_abi>"
  -P ${CMAKE_CURRENT_SOURCE_DIR}/house/called.cmake)
