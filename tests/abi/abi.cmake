# Drivers that are complete, too old or incomplete, in folders like those of an installation.
set(ANNULUS_FAKES ${CMAKE_CURRENT_BINARY_DIR}/fakes)
function(annulus_fake target source folder output)
  add_library(${target} MODULE ${CMAKE_CURRENT_SOURCE_DIR}/abi/${source})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(${target} PRIVATE ${ARGN})
  set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ${output} SUFFIX ""
                        LIBRARY_OUTPUT_DIRECTORY ${ANNULUS_FAKES}/${folder})
endfunction()
annulus_fake(fake_driver_whole fake_driver.c whole libcuda.so.1 PLAIN)
annulus_fake(fake_driver_old fake_driver.c old libcuda.so.1 OLD)
annulus_fake(fake_driver_lacking fake_driver.c lacking libcuda.so.1 LACKING)
# These are copies, because ninja does not permit two targets whose files have the same name.
foreach(fake simulator_newer:VERSION=99 simulator_empty:VERSION=ANNULUS_SIMULATOR_VERSION simulator_none:PLAIN)
  string(REGEX REPLACE ":.*" "" folder ${fake})
  string(REGEX REPLACE ".*:" "" definition ${fake})
  annulus_fake(fake_${folder} fake_simulator.c ${folder} fake_${folder}.so ${definition})
  target_include_directories(fake_${folder} PRIVATE ${PROJECT_SOURCE_DIR}/include
    ${PROJECT_SOURCE_DIR}/tools/simulator/include)
  add_custom_command(TARGET fake_${folder} POST_BUILD COMMAND ${CMAKE_COMMAND} -E copy
    $<TARGET_FILE:fake_${folder}>
    ${ANNULUS_FAKES}/${folder}/libannulus_simulator.so.${PROJECT_VERSION_MAJOR})
endforeach()
annulus_fake(fake_nvrtc_toolkit fake_nvrtc.c toolkit/lib64 libnvrtc.so.12)
annulus_fake(fake_nvrtc_newer fake_nvrtc.c newer libnvrtc.so.13 MAJOR=13)
annulus_fake(fake_nvrtc_wheel fake_nvrtc.c site-packages/nvidia/cuda_nvrtc/lib libnvrtc.so.12)
annulus_fake(fake_nvrtc_builtins fake_nvrtc.c site-packages/nvidia/cuda_nvrtc/lib
  libnvrtc-builtins.so.12.8)
target_link_options(fake_nvrtc_builtins PRIVATE LINKER:-soname,libnvrtc-builtins.so.12.8)
annulus_test(abi LABEL unit LIBRARIES annulus_abi SOURCES abi/check_test.cc abi/libraries_test.cc abi/simulator_library_test.cc
  ALONE abi/simulator_library_test.cc)
target_link_libraries(test_abi PRIVATE ${CMAKE_DL_LIBS})
target_compile_definitions(test_abi PRIVATE ANNULUS_FAKE_DRIVERS="${ANNULUS_FAKES}")
add_dependencies(test_abi fake_simulator_newer fake_simulator_empty fake_simulator_none
                 fake_driver_whole fake_driver_old fake_driver_lacking
                 fake_nvrtc_toolkit fake_nvrtc_newer fake_nvrtc_wheel fake_nvrtc_builtins)
