# Builds libannulus.so for an Arm host with a GPU (GH200, GB200), which takes minutes. The simulator
# is left out, because its interpreter is written for x86. Nothing is run.
#
#   cmake -DANNULUS=repository -DWORK=scratch folder -DCC=aarch64 compiler -DCXX=aarch64 compiler
#     -DFMT=folder of fmt/ -DJSON=folder of nlohmann/ -DXXHASH=folder of xxhash.h [-DLAUNCHER=ccache]
#     -P arm_test.cmake
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "failed (${code}): ${ARGV}\n${text}")
  endif()
endfunction()

# The headers that the library needs are linked into a separate folder, because their original
# folder also has this machine's C library.
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK}/include)
file(CREATE_LINK ${FMT}/fmt ${WORK}/include/fmt SYMBOLIC)
file(CREATE_LINK ${JSON}/nlohmann ${WORK}/include/nlohmann SYMBOLIC)
file(CREATE_LINK ${XXHASH}/xxhash.h ${WORK}/include/xxhash.h SYMBOLIC)
file(WRITE ${WORK}/fmt/fmt-config.cmake "add_library(fmt::fmt-header-only INTERFACE IMPORTED)\n"
  "target_include_directories(fmt::fmt-header-only INTERFACE ${WORK}/include)\n")
file(WRITE ${WORK}/json/nlohmann_json-config.cmake
  "add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED)\n"
  "target_include_directories(nlohmann_json::nlohmann_json INTERFACE ${WORK}/include)\n")

run(${CMAKE_COMMAND} -S ${ANNULUS} -B ${WORK}/build -G Ninja
    -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64
    -DCMAKE_C_COMPILER=${CC} -DCMAKE_CXX_COMPILER=${CXX}
    -DCMAKE_C_COMPILER_LAUNCHER=${LAUNCHER} -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}
    -DANNULUS_SIMULATOR=OFF -DANNULUS_TESTS=OFF -DANNULUS_BENCH=OFF -DANNULUS_PROGRAM=OFF
    -Dfmt_DIR=${WORK}/fmt -Dnlohmann_json_DIR=${WORK}/json -DANNULUS_XXHASH_INCLUDE=${WORK}/include)
run(${CMAKE_COMMAND} --build ${WORK}/build --target libannulus.so)

file(READ ${WORK}/build/libannulus.so machine OFFSET 18 LIMIT 2 HEX)
if(NOT machine STREQUAL "b700")
  message(FATAL_ERROR "libannulus.so is for the machine ${machine}, not for aarch64 (b700)")
endif()
