# How a room of the house is built, said once.
#
#   add_floor(NAME [DEPENDS ROOM...] [SOURCES FILE...] [LIBRARIES TARGET...])
#
# A room is the folder src/NAME (or FOLDER), a static library annulus_NAME and the namespace
# annulus::NAME. It may use only rooms that were added before it, so src/CMakeLists.txt, read from
# top to bottom, is the floor plan; tests/house compares every #include with it.

set(ANNULUS_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast)
# Debug still optimises: a simulator built without optimisation is twenty times slower.
set(CMAKE_CXX_FLAGS_DEBUG "-g1 -O2 -DANNULUS_ASSERTIONS=1")
set(CMAKE_C_FLAGS_DEBUG "-g1 -O2")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set_property(GLOBAL PROPERTY ANNULUS_FLOORS "")
# Of programs that travel to other machines. Sanitizers need the shared runtime.
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  set(ANNULUS_PORTABLE_LINK -static-libstdc++ -static-libgcc)
endif()

function(annulus_warnings target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:${ANNULUS_WARNINGS}>
    $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wpedantic>
    $<$<BOOL:${ANNULUS_WERROR}>:-Werror>)
endfunction()

function(add_floor name)
  cmake_parse_arguments(ROOM "" "FOLDER" "DEPENDS;SOURCES;LIBRARIES" ${ARGN})
  if(NOT ROOM_FOLDER)
    set(ROOM_FOLDER ${CMAKE_CURRENT_SOURCE_DIR}/${name})
  endif()
  list(TRANSFORM ROOM_SOURCES PREPEND ${ROOM_FOLDER}/ REGEX "^[^/]")
  add_library(annulus_${name} STATIC ${ROOM_SOURCES})
  target_include_directories(annulus_${name} PUBLIC
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(annulus_${name} PUBLIC ${ROOM_LIBRARIES})
  annulus_warnings(annulus_${name})
  # The interpreter is compiled for its own processors, so its headers are its own too.
  if(name STREQUAL "base" OR name STREQUAL "sim")
    annulus_precompile(annulus_${name} HEADERS ${ANNULUS_COMMON_HEADERS})
  else()
    annulus_precompile(annulus_${name} FROM annulus_base)
  endif()
  foreach(dependency IN LISTS ROOM_DEPENDS)
    if(NOT TARGET annulus_${dependency})
      message(FATAL_ERROR "room '${name}' depends on '${dependency}', which is not a floor below it")
    endif()
    target_link_libraries(annulus_${name} PUBLIC annulus_${dependency})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY ANNULUS_FLOORS "${name}")
  set_property(GLOBAL PROPERTY ANNULUS_FLOOR_${name}_DEPENDS "${ROOM_DEPENDS}")
  set_property(GLOBAL PROPERTY ANNULUS_FLOOR_${name}_FOLDER "${ROOM_FOLDER}")
endfunction()
