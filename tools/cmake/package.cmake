# What is installed: libannulus.so made from every room but the simulator's, which is a library
# beside it, the public headers, and the files by which find_package(annulus) and pkg-config find
# them. Consumers link annulus::annulus or annulus::simulator and see include/ only; no room, no
# third-party header and no build option reaches them.

get_property(rooms GLOBAL PROPERTY ANNULUS_ROOM_TARGETS)
list(FILTER rooms EXCLUDE REGEX "^annulus_simulator")

# The version script keeps weak symbols of inlined library code out of the dynamic table; within
# annulus:: only what is marked ANNULUS_EXPORT is visible.
set(exports ${CMAKE_CURRENT_LIST_DIR}/annulus.map)
add_library(annulus SHARED ${CMAKE_CURRENT_LIST_DIR}/library.cc)
add_library(annulus::annulus ALIAS annulus)
set_target_properties(annulus PROPERTIES
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
  LINK_DEPENDS ${exports})
target_compile_features(annulus PUBLIC cxx_std_20)
target_include_directories(annulus PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
# The objects themselves: a shared library made of archives would drop what nothing refers to.
foreach(room IN LISTS rooms)
  target_sources(annulus PRIVATE $<TARGET_OBJECTS:${room}>)
endforeach()
target_link_libraries(annulus PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
# What no exported function reaches is dropped: rooms hold what only tests and the program call.
# Threads of its pools and handlers of fork would outlive an unmapping, so dlclose leaves it there.
target_link_options(annulus PRIVATE -Wl,-z,nodelete -Wl,--version-script=${exports} ${ANNULUS_WHOLE_LINK} -Wl,--gc-sections)

# Tuned results that ship, also beside the library of the build tree. Its folders are private, as
# results are read from no others.
include(${CMAKE_CURRENT_LIST_DIR}/packs.cmake)
file(GLOB packs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/tuned/packs/*.pack)
annulus_check_packs(${packs})
file(REMOVE_RECURSE ${PROJECT_BINARY_DIR}/share/annulus/tuned)
if(packs)
  file(COPY ${packs} DESTINATION ${PROJECT_BINARY_DIR}/share/annulus/tuned
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
    DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endif()

if(NOT ANNULUS_INSTALL)
  return()
endif()
if(packs)
  install(FILES ${packs} DESTINATION ${CMAKE_INSTALL_DATADIR}/annulus/tuned)
endif()
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/annulus)
install(TARGETS annulus EXPORT annulus
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/annulus tools/simulator/include/annulus DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN *.h PATTERN *.def)
install(EXPORT annulus NAMESPACE annulus:: FILE annulus-targets.cmake DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/annulus-config-version.cmake
  COMPATIBILITY SameMinorVersion)  # before 1.0 a minor version may change the interface
configure_file(${CMAKE_CURRENT_LIST_DIR}/annulus.pc.in ${PROJECT_BINARY_DIR}/generated/annulus.pc @ONLY)
install(FILES
  ${CMAKE_CURRENT_LIST_DIR}/annulus-config.cmake
  ${PROJECT_BINARY_DIR}/generated/annulus-config-version.cmake
  DESTINATION ${package_folder})
# A component of its own, so that an installation can do without.
if(ANNULUS_SIMULATOR)
  install(TARGETS annulus_simulator_shared EXPORT annulus-simulator
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT simulator)
  install(TARGETS annulus_libcuda annulus_libcudart annulus_libnccl
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/annulus/simulator COMPONENT simulator)
  install(EXPORT annulus-simulator NAMESPACE annulus:: FILE annulus-simulator-targets.cmake
    DESTINATION ${package_folder} COMPONENT simulator)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/annulus-simulator.pc.in
    ${PROJECT_BINARY_DIR}/generated/annulus-simulator.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/generated/annulus-simulator.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT simulator)
endif()
install(FILES ${PROJECT_BINARY_DIR}/generated/annulus.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
# What headers and messages point to: the documents and the examples.
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/annulus)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/annulus PATTERN data EXCLUDE)
install(DIRECTORY tools/simulator/docs DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/annulus/tools/simulator)
