# Compiles several files of a target at once. This takes half the time, because headers take most of
# it. tools/test builds in this way. After a change of one file, the files compiled with it are
# compiled again too, so the development presets do not use it.
#
#   annulus_unity(TARGET [ALONE file...])
#
# Names in anonymous namespaces must differ within a target. ALONE lists files that have equal names
# by design. CMake itself leaves out files with separate compiler options.

option(ANNULUS_UNITY "Compile several files of a target at once" OFF)

function(annulus_unity target)
  cmake_parse_arguments(UNITY "" "" "ALONE" ${ARGN})
  if(NOT ANNULUS_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
  set_source_files_properties(${UNITY_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
