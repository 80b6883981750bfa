# Rejects compilers that cannot compile the tree. Otherwise they would print a page of errors about
# templates. Only these two compilers are checked, because no others are known to fail.
#
#   annulus_check_compiler(ID VERSION)   ID and VERSION have the form of CMake's variables

function(annulus_check_compiler id version)
  set(oldest_GNU 12)
  set(oldest_Clang 16)
  if(DEFINED oldest_${id} AND version VERSION_LESS oldest_${id})
    message(FATAL_ERROR "annulus: ${id} ${version} does not compile it; it needs g++ "
      "${oldest_GNU} or clang ${oldest_Clang}, or newer: choose one with "
      "-DCMAKE_CXX_COMPILER= in an empty build folder")
  endif()
endfunction()

annulus_check_compiler("${CMAKE_CXX_COMPILER_ID}" "${CMAKE_CXX_COMPILER_VERSION}")
