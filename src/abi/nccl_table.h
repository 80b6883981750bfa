#ifndef ANNULUS_ABI_NCCL_TABLE_H_
#define ANNULUS_ABI_NCCL_TABLE_H_

// NCCL as a struct of function pointers, filled by abi/libraries.h. Only one thread at a time may
// use a communicator. If a process has several communicators, one thread should make the calls on
// all of them.

#include "abi/nccl_types.h"

namespace annulus::abi {

struct NcclTable {
#define REQUIRED(result, member, symbol, parameters) result(*member) parameters = nullptr;
#define OPTIONAL(result, member, symbol, parameters) result(*member) parameters = nullptr;
#include "abi/nccl.def"
#undef REQUIRED
#undef OPTIONAL
};

}  // namespace annulus::abi

#endif  // ANNULUS_ABI_NCCL_TABLE_H_
