# Runs gpu_bench on a simulated device with peers that answer without computing, and with peers that
# fail in every possible way. In all cases there must be a line with the library's times, and no
# process may outlive the program.
#
#   cmake -DPROGRAM=gpu_bench -DFOLDER=folder -P gpu_bench_test.cmake
cmake_minimum_required(VERSION 3.25)
set(ENV{ANNULUS_SIMULATOR_OPTIONS} checked=0)
set(folder ${FOLDER}/gpu_bench_test)
file(REMOVE_RECURSE ${folder})

# peer(NAME ON_LOAD): writes a shell script that runs ON_LOAD when it receives the question to load
# a case.
function(peer name on_load)
  file(WRITE ${folder}/${name}.sh "
trap '' TERM
echo $$ >>${folder}/processes
echo '{\"version\": \"a peer of words\"}'
while read -r question; do
  case $question in
    *'\"ask\":\"load\"'*) ${on_load} ;;
    *) echo '{\"ms\": [2, 3, 1]}' ;;
  esac
done
")
endfunction()
set(loaded "echo '{\"first_ms\": 5, \"ms\": 2}'")
set(forever "while :; do sleep 1; done")
peer(steady "${loaded}")
peer(none "echo '{\"error\": \"has no such kernel\"}'")
peer(dies "exit 1")
peer(garbage "echo 'Segmentation fault'")
peer(deaf "${forever}")
file(WRITE ${folder}/mute.sh "echo $$ >>${folder}/processes\n${forever}\n")
# Stops the library's process at the question for the second case, and kills the program at the
# fourth. The program is the parent of the process that waits for this one. The library's process is
# the first process that was started.
peer(harms "echo >>${folder}/loads
    read -r _ _ _ program _ </proc/$PPID/stat
    case $(wc -l <${folder}/loads) in
      2) read -r guard _ </proc/$program/task/$program/children
         read -r library _ </proc/$guard/task/$guard/children
         kill -STOP $library ;;
      4) kill -KILL $program; ${forever} ;;
    esac
    ${loaded}")

# run(EXIT OPTIONS...): runs the program, and sets `lines`, `count` and `error`.
macro(run wanted)
  execute_process(COMMAND ${PROGRAM} --tiny --device sim:sm_90a --rounds 2 --runs 1 ${ARGN}
    RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE error TIMEOUT 120)
  if(NOT code MATCHES "${wanted}")
    message(FATAL_ERROR "gpu_bench ends with '${code}':\n${output}\n${error}")
  endif()
  # The lines contain brackets, and CMake does not split a list between brackets.
  string(REGEX REPLACE "\n$" "" lines "${output}")
  string(REGEX MATCHALL "\n" ends "${output}")
  list(LENGTH ends count)
endmacro()

# line(INDEX): sets `line` to a line of the output, counted from 0.
function(line index)
  set(rest "${lines}\n")
  foreach(i RANGE ${index})
    string(FIND "${rest}" "\n" end)
    string(SUBSTRING "${rest}" 0 ${end} one)
    math(EXPR end "${end} + 1")
    string(SUBSTRING "${rest}" ${end} -1 rest)
  endforeach()
  set(line "${one}" PARENT_SCOPE)
endfunction()

# is(WANTED PATH...): compares a value of the line with a regular expression.
function(is wanted)
  string(JSON value GET "${line}" ${ARGN})
  if(NOT value MATCHES "${wanted}")
    message(FATAL_ERROR "${ARGN} is '${value}', not '${wanted}', in\n${line}")
  endif()
endfunction()
# has(COUNT PATH...): checks the number of values of an array.
function(has wanted)
  string(JSON length LENGTH "${line}" ${ARGN})
  if(NOT length EQUAL wanted)
    message(FATAL_ERROR "${ARGN} has ${length} values, not ${wanted}, in\n${line}")
  endif()
endfunction()

# none_left(): checks that all processes of peers have ended. If no process reaps orphans, they
# remain as zombies.
function(none_left)
  file(STRINGS ${folder}/processes processes)
  foreach(process IN LISTS processes)
    execute_process(COMMAND cat /proc/${process}/stat OUTPUT_VARIABLE state ERROR_QUIET)
    if(NOT state STREQUAL "" AND NOT state MATCHES "\\) [ZX] ")
      message(FATAL_ERROR "process ${process} of a peer is still there: ${state}")
    endif()
  endforeach()
endfunction()

# Runs every kind of case with every kind of peer.
set(peers "")
foreach(name steady none dies garbage deaf mute)
  list(APPEND peers --peer "${name}=sh ${folder}/${name}.sh")
endforeach()
string(TIMESTAMP begin "%s")
run("^0$" --seconds 60 --patience 2 ${peers} --only causal --only decode --only chunk --only append
  --only prepare)
string(TIMESTAMP end "%s")
math(EXPR seconds "${end} - ${begin}")
if(seconds GREATER 62 OR count LESS 8)
  message(FATAL_ERROR "${count} lines in ${seconds} s:\n${lines}\n${error}")
endif()
none_left()
line(0)
is("^copy$" ceiling)
is("^2097152" bytes)
# No peer can measure a matrix product. That is reported after all cases have been measured once.
if(NOT lines MATCHES "\n({[^\n]*\"ceiling\":\"gemm\"[^\n]*})")
  message(FATAL_ERROR "nothing is said of the product of matrices:\n${lines}")
endif()
set(line "${CMAKE_MATCH_1}")
is("no peer" error)
string(REPLACE "\n${line}" "" lines "${lines}")
math(EXPR count "${count} - 1")
line(1)
is("^D128 256 causal$" name)
is("^attention$" kind)
is("^causal$" mask)
is("^ON$" simulated)
is("^w?g?mma " config)
is("^670" bars tflops)
is("^2" programs steady warm_ms 0)
has(2 programs steady cold_ms)
is("^has no such kernel$" programs none error)
is("^has ended when it should load$" programs dies error)
is("^wrote 'Segmentation fault', which is not a JSON object when" programs garbage error)
is("^did not load within 2 s and was killed$" programs deaf error)
is("^has not started yet$" programs mute error)
math(EXPR last "${count} - 1")
foreach(index RANGE 1 ${last})
  line(${index})
  is("^$" programs annulus error)
  has(2 programs annulus warm_ms)
  has(2 programs annulus cold_ms)
endforeach()
is("not started again$" programs deaf error)

# The library's process is stopped in the second case, and works again in the third. The program is
# killed in the fourth. The results from before are there, and no process is left.
run("[Kk]illed|9$" --seconds 60 --patience 1 --only causal
  --peer "harms=exec sh ${folder}/harms.sh")
if(NOT count EQUAL 4)
  message(FATAL_ERROR "a program that was killed in the fourth case has left:\n${lines}\n${error}")
endif()
line(2)
is("^did not measure within 2.5 s and was killed$" programs annulus error)
has(2 programs harms warm_ms)
line(3)
is("^$" programs annulus error)
has(2 programs annulus warm_ms)
none_left()

# A run without any time.
run("^0$" --seconds 0.000001)

# Planning only, and wrong options.
run("^0$" --plan-only --only append)
line(0)
is("^append" config)
run("^1$" --only "no such case")
run("^1$" --peer "a command without a name")
run("^1$" --rounds 0.5)
