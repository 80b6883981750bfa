# find_package(annulus) reads this file. It defines the target annulus::annulus, a shared library
# without further dependencies, and annulus::simulator if the simulator was installed too.
include(${CMAKE_CURRENT_LIST_DIR}/annulus-targets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/annulus-simulator-targets.cmake OPTIONAL)
set(annulus_simulator_FOUND FALSE)
if(TARGET annulus::simulator)
  set(annulus_simulator_FOUND TRUE)
endif()
foreach(component IN LISTS annulus_FIND_COMPONENTS)
  if(annulus_FIND_REQUIRED_${component} AND NOT annulus_${component}_FOUND)
    set(annulus_FOUND FALSE)
    set(annulus_NOT_FOUND_MESSAGE
      "the component '${component}' of annulus is not installed here")
  endif()
endforeach()
