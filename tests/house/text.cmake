# Rules about the text of the sources that a compiler does not check.
#
#   cmake -DROOT=repository -P text.cmake
cmake_minimum_required(VERSION 3.25)
set(errors "")

macro(report file text)
  file(RELATIVE_PATH shown ${ROOT} ${file})
  string(APPEND errors "  ${shown}: ${text}\n")
endmacro()

# refuse(files regex text): reports every line that matches as an error.
function(refuse files regex text)
  foreach(file IN LISTS files)
    file(STRINGS ${file} lines REGEX "${regex}" ENCODING UTF-8)
    foreach(line IN LISTS lines)
      string(STRIP "${line}" line)
      file(RELATIVE_PATH shown ${ROOT} ${file})
      string(APPEND errors "  ${shown}: ${text}: ${line}\n")
    endforeach()
  endforeach()
  set(errors "${errors}" PARENT_SCOPE)
endfunction()

# All texts that people write, except data and this file.
set(texts "")
foreach(folder src autotune include templates tests tools docs)
  file(GLOB_RECURSE files LIST_DIRECTORIES false ${ROOT}/${folder}/*)
  list(APPEND texts ${files})
endforeach()
file(GLOB files ${ROOT}/*.md ${ROOT}/CMakeLists.txt)
list(APPEND texts ${files})
list(FILTER texts EXCLUDE REGEX "\\.(safetensors|json|txt\\.gz|png|pyc|ptx|corpus)$")
list(REMOVE_ITEM texts ${CMAKE_CURRENT_LIST_FILE})
list(FILTER texts EXCLUDE REGEX "^${ROOT}/(tests/gpu_report/(good|failed)|tools/bench/results)/")

set(code ${texts})
list(FILTER code INCLUDE REGEX "\\.(h|cc|c|cu|cuh|def)$")
set(library ${code})
list(FILTER library INCLUDE REGEX "^${ROOT}/(src|autotune|include|tools/simulator/(src|include))/")

# The layout of the text.
refuse("${code}" "\t" "a tab")
refuse("${texts}" "[ \t]+$" "blanks at the end of a line")
refuse("${texts}" "(TO[D]O|FIX[M]E|HAC[K]:)" "unfinished work is not marked, it is done")
refuse("${texts}" "<<<<<<<|>>>>>>> " "a conflict marker")

# Embedded instructions are allowed in one folder only. Tests may contain kernels that are wrong on
# purpose.
set(outside ${code})
list(FILTER outside EXCLUDE REGEX "^${ROOT}/(templates/ptx|tests|tools/simulator/tests)/")
refuse("${outside}" "(^|[^A-Za-z_0-9\"])(__)?asm(__)?[ ]*(volatile|__volatile__)?[ ]*\\("
  "embedded assembly belongs to templates/ptx")

# The environment is read in one file, and has nine variables.
set(elsewhere ${library})
list(FILTER elsewhere EXCLUDE REGEX "/src/base/env\\.cc$")
refuse("${elsewhere}" "(^|[^A-Za-z_])(secure_)?getenv[ ]*\\(" "the environment is read in base/env")
file(READ ${ROOT}/src/base/env.cc text)
string(REGEX MATCHALL "\"ANNULUS_[A-Z_]+\"" names "${text}")
list(SORT names)
list(REMOVE_DUPLICATES names)
set(nine "\"ANNULUS_CACHE_DIR\";\"ANNULUS_COMPILE\";\"ANNULUS_DEVICE\";\"ANNULUS_KERNELS\";\"ANNULUS_LIBRARY_PATH\";\"ANNULUS_LOG\";\"ANNULUS_REQUIRE_GPU\";\"ANNULUS_SIMULATOR_OPTIONS\";\"ANNULUS_TUNED\"")
if(NOT names STREQUAL nine)
  report(${ROOT}/src/base/env.cc "the environment variables are ${names}, not the nine")
endif()

# The library returns or throws. It never prints, and never ends the process. A simulated driver
# prints for kernels and for unmodified programs in one file only.
refuse("${library}" "std::(cout|cerr|clog)" "the library does not print")
refuse("${library}" "(^|[^A-Za-z_.>])(printf|fprintf|puts|fputs|perror|vprintf|vfprintf)[ ]*\\("
  "the library does not print")
refuse("${library}" "std::(abort|exit|terminate|quick_exit|_Exit)[ ]*\\(|(^|[^A-Za-z_.>])(abort|_exit)[ ]*\\("
  "the library does not end the process")

# A thread_local variable with a destructor or an allocation ends the process if there is no memory
# when a thread first uses it.
set(elsewhere ${library})
list(FILTER elsewhere EXCLUDE REGEX "/src/base/of_thread\\.h$")
refuse("${elsewhere}" "(^|[^A-Za-z_])thread_local |static __thread "
  "what a thread has of its own is declared as src/base/of_thread.h describes")
refuse("${library}" "std::call_once"
  "an exception that leaves it passes through the C library, which then may end the process")

# Header guards have one style, named by the path. Headers that are meant to be included several
# times are marked.
foreach(file IN LISTS library)
  if(file MATCHES "\\.h$")
    file(RELATIVE_PATH path ${ROOT} ${file})
    string(REGEX REPLACE "^(tools/simulator/)?(src|include)/" "" path ${path})
    string(TOUPPER ${path} path)
    string(REGEX REPLACE "[^A-Z0-9]" "_" guard ${path})
    if(NOT guard MATCHES "^ANNULUS_")
      set(guard ANNULUS_${guard})
    endif()
    file(READ ${file} text)
    if(NOT text MATCHES "#ifndef ${guard}_\n#define ${guard}_\n" AND
       NOT text MATCHES "included by a file that defines")
      report(${file} "its guard is not ${guard}_")
    endif()
  endif()
endforeach()

if(errors)
  message(FATAL_ERROR "the text of the sources:\n${errors}")
endif()
list(LENGTH texts count)
message(STATUS "${count} files read")
