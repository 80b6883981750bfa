# Compiles a program with nvcc in the usual way, and runs it on the simulated GPU. The program does
# not use the simulator's interface; LD_LIBRARY_PATH selects the simulator. The program exits with 0
# if its result is right, and its output has to end with a line that states so.
#
#   cmake -DSOURCE=program.cu -DFOLDER=where it is compiled -DSIMULATOR=folder of libcudart.so.13
#     -DNVCC=nvcc -DARCH=sm_80 -DDEVICE=0 -P run.cmake
cmake_minimum_required(VERSION 3.25)
if(NOT NVCC)
  message("skipped: there is no nvcc, with which the program has to be compiled")
  return()
endif()
execute_process(COMMAND ${NVCC} --version OUTPUT_VARIABLE version)
if(NOT version MATCHES "release 13\\.")
  message("skipped: the simulated runtime is that of CUDA 13, and ${NVCC} is of another version")
  return()
endif()
get_filename_component(name ${SOURCE} NAME_WE)
get_filename_component(sources ${SOURCE} DIRECTORY)
set(program ${FOLDER}/${name})
if(${SOURCE} IS_NEWER_THAN ${program} OR ${sources}/check.h IS_NEWER_THAN ${program})
  file(MAKE_DIRECTORY ${FOLDER})
  execute_process(COMMAND ${NVCC} -std=c++17 -cudart shared -arch=${ARCH} -lineinfo -o ${program} ${SOURCE}
    RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT code EQUAL 0)
    file(REMOVE ${program})
    message(FATAL_ERROR "nvcc does not compile ${SOURCE}:\n${text}")
  endif()
endif()
execute_process(
  COMMAND ${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${SIMULATOR} CUDA_VISIBLE_DEVICES=${DEVICE} ${program}
  RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE errors)
message("${text}${errors}")
if(NOT "${code}" STREQUAL "${EXPECT}")
  message(FATAL_ERROR "${name} ended with ${code}, not with ${EXPECT}")
endif()
if(SAYS AND NOT "${errors}" MATCHES "${SAYS}")
  message(FATAL_ERROR "${name} did not write '${SAYS}' to stderr")
endif()
