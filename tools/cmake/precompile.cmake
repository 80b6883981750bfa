# Precompiles the headers that nearly every file reads. This saves a third of the time of a full
# build.
#
#   annulus_precompile(TARGET [FROM TARGET] HEADERS header...)
#
# FROM reuses the headers that another target with the same options has precompiled. Every file must
# still include the headers that it uses, because the development presets build without precompiled
# headers.

option(ANNULUS_PRECOMPILE "Precompile the headers that most files read" OFF)
set(ANNULUS_COMMON_HEADERS <algorithm> <array> <atomic> <bit> <cmath> <cstdint> <cstring>
  <filesystem> <fstream> <functional> <map> <memory> <mutex> <optional> <random> <span> <sstream>
  <string> <string_view> <thread> <unordered_map> <utility> <variant> <vector> <fmt/core.h>)

function(annulus_precompile target)
  cmake_parse_arguments(PRECOMPILE "" "FROM" "HEADERS" ${ARGN})
  if(NOT ANNULUS_PRECOMPILE)
    return()
  endif()
  if(PRECOMPILE_FROM)
    target_precompile_headers(${target} REUSE_FROM ${PRECOMPILE_FROM})
  else()
    target_precompile_headers(${target} PRIVATE ${PRECOMPILE_HEADERS})
  endif()
endfunction()

# g++ 12 forgets that a precompiled header contains system headers, and warns about the standard
# library's own strings.
if(ANNULUS_PRECOMPILE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds>
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict> $<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overflow>
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overread>)
endif()
# ccache needs this setting to cache compilations that use a precompiled header.
if(ANNULUS_PRECOMPILE AND CMAKE_CXX_COMPILER_LAUNCHER AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros ${CMAKE_CXX_COMPILER_LAUNCHER})
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
endif()
