// Compares this library's declarations of NCCL with NVIDIA's. Compiled only if nccl.h is found.

#include <nccl.h>

#include "abi/nccl_table.h"
#include "abi/signature.h"

namespace annulus::abi {
namespace {

#define SAME(result, symbol, parameters)                                 \
  static_assert(same_signature_v<result parameters, decltype(::symbol)>, \
                "abi/nccl.def disagrees with nccl.h about " #symbol);
#define REQUIRED(result, member, symbol, parameters) SAME(result, symbol, parameters)
#if NCCL_VERSION_CODE >= 22800
#define OPTIONAL(result, member, symbol, parameters) SAME(result, symbol, parameters)
#else
#define OPTIONAL(result, member, symbol, parameters)  // an older header may not have it
#endif
#include "abi/nccl.def"

static_assert(sizeof(NcclUniqueId) == sizeof(ncclUniqueId));
static_assert(same_number_v<kNcclSuccess, ncclSuccess>);
static_assert(same_number_v<kNcclUnhandledCudaError, ncclUnhandledCudaError>);
static_assert(same_number_v<kNcclSystemError, ncclSystemError>);
static_assert(same_number_v<kNcclInternalError, ncclInternalError>);
static_assert(same_number_v<kNcclInvalidArgument, ncclInvalidArgument>);
static_assert(same_number_v<kNcclInvalidUsage, ncclInvalidUsage>);
static_assert(same_number_v<kNcclRemoteError, ncclRemoteError>);
static_assert(same_number_v<kNcclInProgress, ncclInProgress>);
static_assert(same_number_v<kNcclUint8, ncclUint8>);
static_assert(same_number_v<kNcclInt32, ncclInt32>);
static_assert(same_number_v<kNcclInt64, ncclInt64>);
static_assert(same_number_v<kNcclFloat16, ncclFloat16>);
static_assert(same_number_v<kNcclFloat32, ncclFloat32>);
static_assert(same_number_v<kNcclBfloat16, ncclBfloat16>);
static_assert(same_number_v<kNcclSum, ncclSum>);
static_assert(same_number_v<kNcclMax, ncclMax>);
static_assert(same_number_v<kNcclMin, ncclMin>);

}  // namespace
}  // namespace annulus::abi

#undef SAME
