#ifndef ANNULUS_ABI_NVRTC_TYPES_H_
#define ANNULUS_ABI_NVRTC_TYPES_H_

// The types and result codes of NVRTC. They are declared here so that the library can be built
// without the toolkit. If nvrtc.h is found, nvrtc_check.cc compares all of them with it at compile
// time.

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
  kNvrtcCompilation = 6,  // the source is invalid; the program log has the place
  kNvrtcBuiltinOperationFailure = 7,
  kNvrtcNameExpressionNotValid = 10,
  kNvrtcInternalError = 11,
};

}  // namespace annulus::abi

#endif  // ANNULUS_ABI_NVRTC_TYPES_H_
