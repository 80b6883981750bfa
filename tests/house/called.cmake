# Checks that every function that libannulus.so exports is called by a program outside the library.
# This finds functions that cannot be linked, or that no program uses.
#
#   cmake -DLIBRARY=libannulus.so "-DPROGRAMS=program|..." -DNM=nm -P called.cmake
cmake_minimum_required(VERSION 3.25)

# names_in(out file option letters): the mangled names that nm shows with one of these letters.
function(names_in out file option letters)
  execute_process(COMMAND ${NM} -D ${option} ${file}
    OUTPUT_VARIABLE text RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${NM} cannot read ${file}")
  endif()
  string(REGEX MATCHALL "[^\n]+" lines "${text}")
  set(names "")
  foreach(line IN LISTS lines)
    if(line MATCHES "^[0-9a-f ]* (${letters}) ([^ @]+)")
      list(APPEND names ${CMAKE_MATCH_2})
    endif()
  endforeach()
  set(${out} "${names}" PARENT_SCOPE)
endfunction()

names_in(offered ${LIBRARY} --defined-only "T")
# A function that takes the inside of a handle (Impl, detail) cannot be called from outside.
# Constructors and destructors appear twice, as complete and as base objects.
list(FILTER offered EXCLUDE REGEX "4Impl|6detail|C2E|D2E")
set(used "")
string(REPLACE "|" ";" programs "${PROGRAMS}")
foreach(program IN LISTS programs)
  names_in(names ${program} --undefined-only "U")
  list(APPEND used ${names})
endforeach()
list(LENGTH offered count)
list(REMOVE_ITEM offered ${used})
if(offered)
  list(JOIN offered "\n  " text)
  message(FATAL_ERROR "public functions that no test outside the library calls:\n  ${text}")
endif()
if(count LESS 100)
  message(FATAL_ERROR "only ${count} public functions were found")
endif()
message(STATUS "${count} public functions are called from outside")
