# How a room of the house is built, said once.
#
#   add_floor(NAME [DEPENDS ROOM...] [SOURCES FILE...] [LIBRARIES TARGET...]
#             [OPTIONS COMPILER-OPTION... PRECOMPILE OWN|TARGET] [PART_OF ROOM])
#
# A room is the folder NAME (or FOLDER) next to the CMakeLists.txt that adds it, a static library
# annulus_NAME and the namespace annulus::NAME. It may use only rooms that were added before it, so
# src/CMakeLists.txt, read from top to bottom, is the floor plan; tests/house compares every #include
# with it. The simulated GPU is a package of its own, tools/simulator, with floors of the same kind.
#
# OPTIONS are the compiler's, for its own files. Precompiled headers are those of base, and fit only
# where the options do: a room with options has its own, or those of a room with the same options.
#
# A large room has floors of its own: the room attention/plan is the folder src/attention/plan, the
# library annulus_attention_plan and shares the namespace annulus::attention.
#
# A part of a room that can be left out is a library of its own, annulus_NAME, with PART_OF the room,
# whose folder and namespace it shares.
#
#   add_floors(NAME ROOM...)
#
# gives several rooms one name, by which others depend on all of them: annulus_NAME links them.

set(ANNULUS_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast)
# Debug still optimises: a simulator built without optimisation is twenty times slower.
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_FLAGS_DEBUG "-g1 -O2 -DANNULUS_ASSERTIONS=1")
  set(CMAKE_C_FLAGS_DEBUG "-g1 -O2")
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
endif()
set_property(GLOBAL PROPERTY ANNULUS_FLOORS "")
# Of programs that travel to other machines. Sanitizers need the shared runtime.
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  set(ANNULUS_PORTABLE_LINK -static-libstdc++ -static-libgcc)
endif()
# A shared library names all that it needs. What clang's sanitizers call is in the program alone.
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize" OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(ANNULUS_WHOLE_LINK LINKER:--no-undefined)
endif()

function(annulus_warnings target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:${ANNULUS_WARNINGS}>
    $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wpedantic>
    $<$<BOOL:${ANNULUS_WERROR}>:-Werror>)
endfunction()

# The simulator is opened, not linked: a program that may want it needs it built.
function(annulus_opens_simulator target)
  if(ANNULUS_SIMULATOR)
    add_dependencies(${target} annulus_simulator_shared)
  endif()
endfunction()

function(add_floor name)
  cmake_parse_arguments(ROOM "" "FOLDER;PART_OF;PRECOMPILE" "DEPENDS;SOURCES;LIBRARIES;OPTIONS" ${ARGN})
  if(NOT ROOM_FOLDER)
    set(ROOM_FOLDER ${CMAKE_CURRENT_SOURCE_DIR}/${name})
  endif()
  list(TRANSFORM ROOM_SOURCES PREPEND ${ROOM_FOLDER}/ REGEX "^[^/]")
  string(REPLACE "/" "_" target annulus_${name})
  add_library(${target} STATIC ${ROOM_SOURCES})
  target_include_directories(${target} PUBLIC
    ${PROJECT_SOURCE_DIR}/include ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(${target} PUBLIC ${ROOM_LIBRARIES})
  annulus_warnings(${target})
  target_compile_options(${target} PRIVATE ${ROOM_OPTIONS})
  annulus_unity(${target})
  if(name STREQUAL "base" OR ROOM_PRECOMPILE STREQUAL "OWN")
    annulus_precompile(${target} HEADERS ${ANNULUS_COMMON_HEADERS})
  elseif(ROOM_PRECOMPILE)
    annulus_precompile(${target} FROM ${ROOM_PRECOMPILE})
  else()
    annulus_precompile(${target} FROM annulus_base)
  endif()
  foreach(dependency IN LISTS ROOM_DEPENDS)
    string(REPLACE "/" "_" below annulus_${dependency})
    if(NOT TARGET ${below})
      message(FATAL_ERROR "room '${name}' depends on '${dependency}', which is not a floor below it")
    endif()
    target_link_libraries(${target} PUBLIC ${below})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY ANNULUS_ROOM_TARGETS "${target}")
  if(ROOM_PART_OF)
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY ANNULUS_FLOORS "${name}")
  set_property(GLOBAL PROPERTY ANNULUS_FLOOR_${name}_DEPENDS "${ROOM_DEPENDS}")
  set_property(GLOBAL PROPERTY ANNULUS_FLOOR_${name}_FOLDER "${ROOM_FOLDER}")
endfunction()

function(add_floors name)
  add_library(annulus_${name} INTERFACE)
  foreach(room IN LISTS ARGN)
    string(REPLACE "/" "_" target annulus_${room})
    target_link_libraries(annulus_${name} INTERFACE ${target})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY ANNULUS_FLOORS "${name}")
  set_property(GLOBAL PROPERTY ANNULUS_FLOOR_${name}_DEPENDS "${ARGN}")
  set_property(GLOBAL PROPERTY ANNULUS_FLOOR_${name}_FOLDER "")
endfunction()
