#ifndef ANNULUS_ABI_NVRTC_TABLE_H_
#define ANNULUS_ABI_NVRTC_TABLE_H_

// NVRTC as a struct of function pointers, filled by abi/libraries.h. The functions may be called
// from any thread, but only one thread at a time may use a program.

#include "abi/nvrtc_types.h"

namespace annulus::abi {

struct NvrtcTable {
#define REQUIRED(result, member, symbol, parameters) result(*member) parameters = nullptr;
#define OPTIONAL(result, member, symbol, parameters) result(*member) parameters = nullptr;
#include "abi/nvrtc.def"
#undef REQUIRED
#undef OPTIONAL
};

}  // namespace annulus::abi

#endif  // ANNULUS_ABI_NVRTC_TABLE_H_
