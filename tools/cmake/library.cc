// libannulus.so consists of the rooms in src/. CMake requires at least one source file for the
// library itself.
