// Compares this library's declarations of NVRTC with NVIDIA's. Compiled only if nvrtc.h is found.

#include <cuda.h>
#include <nvrtc.h>

#include "abi/nvrtc_table.h"
#include "abi/signature.h"

namespace annulus::abi {
namespace {

#define SAME(result, symbol, parameters)                                 \
  static_assert(same_signature_v<result parameters, decltype(::symbol)>, \
                "abi/nvrtc.def disagrees with nvrtc.h about " #symbol);
#define REQUIRED(result, member, symbol, parameters) SAME(result, symbol, parameters)
#if CUDA_VERSION >= 13000
#define OPTIONAL(result, member, symbol, parameters) SAME(result, symbol, parameters)
#else
#define OPTIONAL(result, member, symbol, parameters)  // an older header may not have it
#endif
#include "abi/nvrtc.def"

static_assert(same_number_v<kNvrtcSuccess, NVRTC_SUCCESS>);
static_assert(same_number_v<kNvrtcOutOfMemory, NVRTC_ERROR_OUT_OF_MEMORY>);
static_assert(same_number_v<kNvrtcProgramCreationFailure, NVRTC_ERROR_PROGRAM_CREATION_FAILURE>);
static_assert(same_number_v<kNvrtcInvalidInput, NVRTC_ERROR_INVALID_INPUT>);
static_assert(same_number_v<kNvrtcInvalidProgram, NVRTC_ERROR_INVALID_PROGRAM>);
static_assert(same_number_v<kNvrtcInvalidOption, NVRTC_ERROR_INVALID_OPTION>);
static_assert(same_number_v<kNvrtcCompilation, NVRTC_ERROR_COMPILATION>);
static_assert(same_number_v<kNvrtcBuiltinOperationFailure, NVRTC_ERROR_BUILTIN_OPERATION_FAILURE>);
static_assert(same_number_v<kNvrtcNameExpressionNotValid, NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID>);
static_assert(same_number_v<kNvrtcInternalError, NVRTC_ERROR_INTERNAL_ERROR>);

}  // namespace
}  // namespace annulus::abi

#undef SAME
