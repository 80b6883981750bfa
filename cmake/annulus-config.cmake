# Found by find_package(annulus): gives the target annulus::annulus, a shared library without
# further dependencies.
include(${CMAKE_CURRENT_LIST_DIR}/annulus-targets.cmake)
