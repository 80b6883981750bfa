#ifndef ANNULUS_JIT_BUILD_ID_H_
#define ANNULUS_JIT_BUILD_ID_H_

#include <string>

namespace annulus::jit {

// The linker's build id, in hex, of the loaded library that contains an address; "no build id" if
// there is none. Two different builds of one version have different build ids. The id does not
// depend on a path or a time.
std::string build_id(const void* address);

}  // namespace annulus::jit

#endif  // ANNULUS_JIT_BUILD_ID_H_
