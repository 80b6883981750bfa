#ifndef ANNULUS_ABI_NCCL_TYPES_H_
#define ANNULUS_ABI_NCCL_TYPES_H_

// The types and numbers of NCCL that the table uses. If nccl.h is found, nccl_check.cc compares all
// of them with it at compile time.

#include <cstddef>

#include "abi/cuda_types.h"

namespace annulus::abi {

using NcclResult = int;
using NcclComm = struct NcclCommOpaque*;
using NcclWindow = struct NcclWindowOpaque*;
struct NcclConfig;  // begins with its size and version; this library only passes it to NCCL

struct NcclUniqueId {
  char bytes[128];
};

enum : NcclResult {
  kNcclSuccess = 0,
  kNcclUnhandledCudaError = 1,
  kNcclSystemError = 2,
  kNcclInternalError = 3,
  kNcclInvalidArgument = 4,
  kNcclInvalidUsage = 5,
  kNcclRemoteError = 6,
  kNcclInProgress = 7,
};

// ncclDataType_t
enum : int {
  kNcclUint8 = 1,
  kNcclInt32 = 2,
  kNcclInt64 = 4,
  kNcclFloat16 = 6,
  kNcclFloat32 = 7,
  kNcclBfloat16 = 9,
};

// ncclRedOp_t
enum : int { kNcclSum = 0, kNcclMax = 2, kNcclMin = 3 };

}  // namespace annulus::abi

#endif  // ANNULUS_ABI_NCCL_TYPES_H_
