# What is installed: libannulus.so made from every room, the public headers, and the files by which
# find_package(annulus) and pkg-config find them. Consumers link annulus::annulus and see include/
# only; no room, no third-party header and no build option reaches them.

include(CMakePackageConfigHelpers)

get_property(floors GLOBAL PROPERTY ANNULUS_FLOORS)
list(TRANSFORM floors PREPEND annulus_ OUTPUT_VARIABLE rooms)

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
target_link_options(annulus PRIVATE -Wl,--version-script=${exports} -Wl,--no-undefined)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/annulus)
install(TARGETS annulus EXPORT annulus
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/annulus DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h)
install(EXPORT annulus NAMESPACE annulus:: FILE annulus-targets.cmake DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/annulus-config-version.cmake
  COMPATIBILITY SameMajorVersion)
configure_file(${CMAKE_CURRENT_LIST_DIR}/annulus.pc.in ${PROJECT_BINARY_DIR}/generated/annulus.pc @ONLY)
install(FILES
  ${CMAKE_CURRENT_LIST_DIR}/annulus-config.cmake
  ${PROJECT_BINARY_DIR}/generated/annulus-config-version.cmake
  DESTINATION ${package_folder})
install(FILES ${PROJECT_BINARY_DIR}/generated/annulus.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/annulus)
