#ifndef ANNULUS_ABI_NVRTC_TYPES_H_
#define ANNULUS_ABI_NVRTC_TYPES_H_

// The types and result codes of NVRTC, declared here so that the library builds without the
// toolkit. Where nvrtc.h is found, nvrtc_check.cc compares every one of them at compile time.

#include <cstddef>

namespace annulus::abi {

using NvrtcResult = int;
using NvrtcProgram = struct NvrtcProgramOpaque*;

enum : NvrtcResult {
  kNvrtcSuccess = 0,
  kNvrtcOutOfMemory = 1,
  kNvrtcProgramCreationFailure = 2,
  kNvrtcInvalidInput = 3,
  kNvrtcInvalidProgram = 4,
  kNvrtcInvalidOption = 5,
  kNvrtcCompilation = 6,  // the source is wrong: the program log says where
  kNvrtcBuiltinOperationFailure = 7,
  kNvrtcNameExpressionNotValid = 10,
  kNvrtcInternalError = 11,
};

}  // namespace annulus::abi

#endif  // ANNULUS_ABI_NVRTC_TYPES_H_
