# Installs the build tree into a separate folder and moves that folder. Then builds and runs the
# consumer project with it, through find_package and (if it is installed) through pkg-config.
#
#   cmake -DBUILD=build tree -DWORK=scratch folder -DCC=compiler -DCXX=compiler
#     [-DC_FLAGS=... -DCXX_FLAGS=...] -DEXAMPLE=docs/examples/window.c
#     [-DSIMULATOR_EXAMPLE=docs/examples/simulator.c] -P consumer_test.cmake
#
# The flags are those of the build tree, because the program needs the same sanitizer.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "failed (${code}): ${ARGV}\n${text}")
  endif()
  set(output "${text}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/installed)
file(RENAME ${WORK}/installed ${WORK}/moved)

run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${WORK}/build -G Ninja
    -DCMAKE_C_COMPILER=${CC} -DCMAKE_CXX_COMPILER=${CXX} -DEXAMPLE=${EXAMPLE}
    "-DCMAKE_C_FLAGS=${C_FLAGS}" "-DCMAKE_CXX_FLAGS=${CXX_FLAGS}"
    -DCMAKE_PREFIX_PATH=${WORK}/moved -DSIMULATOR_EXAMPLE=${SIMULATOR_EXAMPLE})
file(STRINGS ${WORK}/build/CMakeCache.txt found REGEX "^annulus_DIR:PATH=${WORK}/moved/")
if(NOT found)
  message(FATAL_ERROR "find_package(annulus) found another copy than the one just installed")
endif()
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/consumer)
if(NOT output MATCHES "causal.*nonsense")
  message(FATAL_ERROR "the consumer printed: ${output}")
endif()

# The program must find the simulator in the moved folder, and never in the build tree.
set(window ${CMAKE_COMMAND} -E env --unset=ANNULUS_LIBRARY_PATH ANNULUS_DEVICE=sim:sm_80
  ANNULUS_CACHE_DIR=${CACHE} ${WORK}/build/window)
if(SIMULATOR_EXAMPLE)
  run(${window})
  if(NOT output MATCHES "0x4000")
    message(FATAL_ERROR "the example in C printed: ${output}")
  endif()
  run(${WORK}/build/simulated)
  if(NOT output MATCHES "thread 31 was the last")
    message(FATAL_ERROR "the example of the simulator printed: ${output}")
  endif()
endif()

# The installed program must find the simulator in the folder lib next to its own folder.
file(GLOB program ${WORK}/moved/bin/annulus)
if(SIMULATOR_EXAMPLE AND program)
  run(${CMAKE_COMMAND} -E env --unset=ANNULUS_LIBRARY_PATH ${program} doctor --device sim:sm_80 --json)
  if(NOT output MATCHES "${WORK}/moved/[^\"]*libannulus_simulator")
    message(FATAL_ERROR "the installed program takes its simulator from elsewhere: ${output}")
  endif()
endif()

# The program must find a pack that was installed with it, after the folders of the search path.
# With `none` it must not.
if(program)
  get_filename_component(tests ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
  set(pack ${WORK}/moved/share/annulus/tuned/x.pack)
  configure_file(${tests}/house/predicted.pack ${pack} COPYONLY)
  file(CHMOD ${WORK}/moved/share/annulus/tuned
    PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE)
  file(CHMOD ${pack} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ)
  run(${program} tuned list --json --tuned ${WORK}/nowhere)
  if(NOT output MATCHES "${pack}")
    message(FATAL_ERROR "the installed program does not list the pack beside it: ${output}")
  endif()
  run(${program} tuned list --json --tuned none)
  if(output MATCHES "${pack}")
    message(FATAL_ERROR "the installed program lists a pack where it is to look nowhere: ${output}")
  endif()
  file(REMOVE_RECURSE ${WORK}/moved/share/annulus)
endif()

# Without the component everything else must work. Requesting a simulated device must report what is
# missing, and where it was searched.
file(GLOB_RECURSE simulators ${WORK}/moved/*annulus_simulator* ${WORK}/moved/*annulus-simulator*)
foreach(file IN LISTS simulators)
  file(RENAME ${file} ${file}.away)
endforeach()
execute_process(COMMAND ${window} RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE text)
if(code EQUAL 0 OR NOT text MATCHES "ANNULUS_SIMULATOR=ON" OR NOT text MATCHES "${WORK}/moved/[^:]*: has no libannulus_simulator")
  message(FATAL_ERROR "without the simulator the example in C printed (${code}): ${text}")
endif()
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${WORK}/without -G Ninja
    -DCMAKE_C_COMPILER=${CC} -DCMAKE_CXX_COMPILER=${CXX} -DEXAMPLE=${EXAMPLE}
    -DCMAKE_PREFIX_PATH=${WORK}/moved)
foreach(file IN LISTS simulators)
  file(RENAME ${file}.away ${file})
endforeach()

# A program that requests another version must be refused. Before 1.0 each minor version is another
# version.
foreach(version 99 0.2 0.9 0.0)
  file(REMOVE_RECURSE ${WORK}/wrong)
  file(WRITE ${WORK}/wrong/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)\nproject(wrong NONE)\n"
    "find_package(annulus ${version} CONFIG REQUIRED)\n")
  execute_process(
    COMMAND ${CMAKE_COMMAND} -S ${WORK}/wrong -B ${WORK}/wrong/build -G Ninja
            -DCMAKE_PREFIX_PATH=${WORK}/moved
    RESULT_VARIABLE code OUTPUT_QUIET ERROR_QUIET)
  if(code EQUAL 0)
    message(FATAL_ERROR "version ${version} was accepted")
  endif()
endforeach()

# The documents to which headers refer must be in the installed folder of documents.
foreach(file docs/patterns.md docs/embedding.md docs/examples/attention.cc README.md LICENSE)
  file(GLOB_RECURSE there ${WORK}/moved/share/doc/annulus/${file})
  if(NOT there)
    message(FATAL_ERROR "${file} is not installed")
  endif()
endforeach()

# The man page must be in the folder that man searches.
if(program AND NOT EXISTS ${WORK}/moved/share/man/man1/annulus.1)
  message(FATAL_ERROR "no man page is installed")
endif()

# Completions must be in the folders that their shells search.
if(program)
  foreach(file zsh/site-functions/_annulus fish/vendor_completions.d/annulus.fish)
    if(NOT EXISTS ${WORK}/moved/share/${file})
      message(FATAL_ERROR "no share/${file} is installed")
    endif()
  endforeach()
endif()

# The completion must offer verbs, subcommands and options.
find_program(BASH bash)
if(BASH AND program)
  function(completes line expected)
    execute_process(
      COMMAND ${BASH} -c "source '${WORK}/moved/share/bash-completion/completions/annulus'
        PATH='${WORK}/moved/bin':$PATH; COMP_WORDS=(${line}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
        _annulus; echo \" \${COMPREPLY[*]} \""
      OUTPUT_VARIABLE text ERROR_VARIABLE text)
    if(NOT text MATCHES " ${expected} ")
      message(FATAL_ERROR "'${line}' is completed by: ${text}")
    endif()
  endfunction()
  completes("annulus tu" tune)
  completes("annulus pattern ex" export)
  completes("annulus run --kv-h" --kv-heads)
endif()

find_program(PKG_CONFIG pkg-config)
if(PKG_CONFIG)
  file(GLOB_RECURSE description ${WORK}/moved/annulus.pc)
  get_filename_component(folder ${description} DIRECTORY)
  run(${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${folder} ${PKG_CONFIG} --cflags --libs annulus)
  separate_arguments(flags UNIX_COMMAND "${output}")
  separate_arguments(c_flags UNIX_COMMAND "${C_FLAGS}")
  separate_arguments(cxx_flags UNIX_COMMAND "${CXX_FLAGS}")
  run(${CXX} -std=c++20 ${cxx_flags} ${CMAKE_CURRENT_LIST_DIR}/main.cc -o ${WORK}/by_pkg_config ${flags})
  run(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${folder}/.. ${WORK}/by_pkg_config)
  run(${CC} -std=c99 -pedantic -Werror ${c_flags} ${EXAMPLE} -o ${WORK}/c_by_pkg_config ${flags})
  if(SIMULATOR_EXAMPLE)
    run(${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${folder} ${PKG_CONFIG} --cflags --libs annulus-simulator)
    separate_arguments(flags UNIX_COMMAND "${output}")
    run(${CC} -std=c99 -pedantic -Werror ${c_flags} ${SIMULATOR_EXAMPLE} -o ${WORK}/simulated_by_pkg_config ${flags})
    run(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${folder}/.. ${WORK}/simulated_by_pkg_config)
  endif()
endif()
