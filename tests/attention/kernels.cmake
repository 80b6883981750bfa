# Tests of the kernel families: their records, their configurations and sources, the result of NVRTC
# for every shipped configuration, and the error messages for illegal template arguments.
annulus_test(kernels LABEL unit LIBRARIES annulus_attention
  SOURCES attention/family_test.cc attention/kernel_config_test.cc attention/kernel_source_test.cc
    attention/kernel_compile_test.cc compile_fail/illegal_shape_test.cc support/recorded_usages.cc
  ALONE attention/kernel_source_test.cc)
target_compile_definitions(test_kernels PRIVATE
  ANNULUS_KERNEL_USAGES="${CMAKE_CURRENT_SOURCE_DIR}/attention/kernel_usages.txt")
annulus_test(kernels_device LABEL device LIBRARIES annulus_test_devices DEVICES sim:sm_90a
  SOURCES attention/cluster_test.cc attention/in_place_test.cc attention/kernel_device_test.cc)
