# Packs of tuned results that ship with the library. Each pack must contain measurements only. A
# prediction is the model's opinion about a chip, and it would take precedence over the choice that
# the same model makes anew in every version.
#
#   cmake -DPACKS="a.pack;b.pack" -P packs.cmake     checks the packs
cmake_minimum_required(VERSION 3.25)

function(annulus_check_packs)
  foreach(pack IN LISTS ARGN)
    file(READ ${pack} text)
    if(NOT text MATCHES "^annulus-tuned-pack [0-9]+ [0-9a-f]+\n")
      message(FATAL_ERROR "annulus: ${pack} is not a pack of tuned results")
    endif()
    # The lists contain only the counted matches, because lines contain characters that CMake would
    # interpret.
    string(REGEX MATCHALL "\n{" lines "${text}")
    string(REGEX MATCHALL "\"predicted\":false" measured "${text}")
    list(LENGTH lines count)
    list(LENGTH measured measured_count)
    if(NOT measured_count EQUAL count OR text MATCHES "\"predicted\":true|, simulated\"")
      message(FATAL_ERROR "annulus: ${pack} holds predictions, and only measured results may ship: "
        "annulus tuned export ${pack} --measured")
    endif()
  endforeach()
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  annulus_check_packs(${PACKS})
endif()
