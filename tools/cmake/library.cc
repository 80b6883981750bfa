// libannulus.so consists of the rooms in src/; CMake wants one source of the library's own.
