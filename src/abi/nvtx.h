#ifndef ANNULUS_ABI_NVTX_H_
#define ANNULUS_ABI_NVTX_H_

#include <string>

namespace annulus::abi {

// Passes spans (base/span.h) to a profiler as ranges of the NVTX domain "annulus". A profiler that
// accepts ranges sets NVTX_INJECTION64_PATH, as Nsight Systems and Nsight Compute do; `library` is
// the value of this variable. Nothing is done if it is empty, and in all calls except the first. If
// the profiler's library cannot be used, returns the reason. Otherwise returns an empty text.
std::string open_nvtx(const std::string& library);

}  // namespace annulus::abi

#endif  // ANNULUS_ABI_NVTX_H_
