# The functions that build a room of the library.
#
#   add_floor(NAME [DEPENDS ROOM...] [SOURCES FILE...] [LIBRARIES TARGET...]
#             [OPTIONS COMPILER-OPTION... PRECOMPILE OWN|TARGET] [PART_OF ROOM])
#
# A room is the folder NAME (or FOLDER) next to the CMakeLists.txt that adds it, a static library
# annulus_NAME, and the namespace annulus::NAME. A room may use only rooms that were added before
# it. So src/CMakeLists.txt, read from top to bottom, is the floor plan, and tests/house compares
# every #include with it. The simulated GPU is the separate package tools/simulator, with the same
# kind of floors.
#
# OPTIONS are compiler options for the files of the room. The precompiled headers of base fit only
# rooms without options. A room with options has its own precompiled headers, or shares them with a
# room that has the same options.
#
# A large room has its own floors. For example, the room attention/plan is the folder
# src/attention/plan and the library annulus_attention_plan, and it shares the namespace
# annulus::attention.
#
# A part of a room that can be left out is a separate library annulus_NAME. PART_OF names the room,
# whose folder and namespace the part shares.
#
#   add_floors(NAME ROOM...)
#
# gives several rooms one name, annulus_NAME. Another room that depends on this name depends on all
# of them.

set(ANNULUS_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast)
# A debug build also optimises, because a simulator without optimisation is twenty times slower.
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_FLAGS_DEBUG "-g1 -O2 -DANNULUS_ASSERTIONS=1")
  set(CMAKE_C_FLAGS_DEBUG "-g1 -O2")
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
endif()
set_property(GLOBAL PROPERTY ANNULUS_FLOORS "")
# The link options of programs that are copied to other machines. Sanitizers need the shared
# runtime, so they do without these options.
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  set(ANNULUS_PORTABLE_LINK -static-libstdc++ -static-libgcc)
endif()
# A shared library must name all libraries that it needs. With clang's sanitizers that is not
# possible, because the functions that they call are in the program only.
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize" OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(ANNULUS_WHOLE_LINK LINKER:--no-undefined)
endif()

function(annulus_warnings target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:${ANNULUS_WARNINGS}>
    $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wpedantic>
    $<$<BOOL:${ANNULUS_WERROR}>:-Werror>)
endfunction()

# A program opens the simulator at run time and does not link it. So a program that may need the
# simulator depends on its build.
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
