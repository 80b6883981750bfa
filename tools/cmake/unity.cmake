# Files that are compiled together, which takes half the time: most of it is the headers'. tools/test
# builds so; a change of one file then compiles the files beside it too, so the development presets
# do not.
#
#   annulus_unity(TARGET [ALONE file...])
#
# Names in anonymous namespaces have to differ within a target. ALONE are files that have the same
# names by design. CMake leaves out, by itself, files with compiler options of their own.

option(ANNULUS_UNITY "Compile several files of a target at once" OFF)

function(annulus_unity target)
  cmake_parse_arguments(UNITY "" "" "ALONE" ${ARGN})
  if(NOT ANNULUS_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
  set_source_files_properties(${UNITY_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
