# The files that are installed. libannulus.so is made from every room except the simulator, which is
# a separate library next to it. The others are the public headers, and the files with which
# find_package(annulus) and pkg-config find the libraries. Consumers link annulus::annulus or
# annulus::simulator and see only include/. Rooms, third-party headers and build options stay hidden
# from them.

get_property(rooms GLOBAL PROPERTY ANNULUS_ROOM_TARGETS)
list(FILTER rooms EXCLUDE REGEX "^annulus_simulator")

# The version script keeps weak symbols of inlined library code out of the dynamic symbol table.
# Within annulus::, only symbols marked ANNULUS_EXPORT are visible.
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
# The library is made from the object files of the rooms. A shared library made from archives would
# drop objects without references.
foreach(room IN LISTS rooms)
  target_sources(annulus PRIVATE $<TARGET_OBJECTS:${room}>)
endforeach()
target_link_libraries(annulus PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
# Code that no exported function reaches is dropped, because rooms have code that only tests and the
# program call. dlclose leaves the library mapped, because threads of its pools and handlers of fork
# would outlive the mapping.
target_link_options(annulus PRIVATE -Wl,-z,nodelete -Wl,--version-script=${exports} ${ANNULUS_WHOLE_LINK} -Wl,--gc-sections)

# The tuned results that ship. They are copied next to the library of the build tree too. Other
# users must not be able to write to its folders, because the library reads results only from such
# folders.
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
# The simulator is a separate component, so that an installation can leave it out.
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
# The documents and the examples to which headers and messages refer.
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/annulus)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/annulus PATTERN data EXCLUDE)
install(DIRECTORY tools/simulator/docs DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/annulus/tools/simulator)
