#ifndef ANNULUS_JIT_BUILD_ID_H_
#define ANNULUS_JIT_BUILD_ID_H_

#include <string>

namespace annulus::jit {

// The linker's build id of the loaded library that holds an address, in hex; "no build id" where it
// has none. Two builds of one version differ in it, and neither a path nor a time does.
std::string build_id(const void* address);

}  // namespace annulus::jit

#endif  // ANNULUS_JIT_BUILD_ID_H_
