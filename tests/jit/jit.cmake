# Tests of the room jit: the parts without NVRTC, and NVRTC if it is found.
annulus_test(jit LABEL unit LIBRARIES annulus_jit SOURCES jit/cache_processes_test.cc
  jit/compiled_kernel_test.cc jit/compiler_test.cc jit/disk_cache_test.cc
  jit/kernel_cache_test.cc jit/kernel_folders_test.cc jit/resource_usage_test.cc jit/spec_test.cc
  jit/templates_test.cc)
target_compile_definitions(test_jit PRIVATE ANNULUS_TEMPLATES="${PROJECT_SOURCE_DIR}/templates")
