#ifndef ANNULUS_ABI_NVTX_H_
#define ANNULUS_ABI_NVTX_H_

#include <string>

namespace annulus::abi {

// Passes spans (base/span.h) to a profiler as ranges of the NVTX domain "annulus". A profiler that
// takes ranges sets NVTX_INJECTION64_PATH, as Nsight Systems and Nsight Compute do; `library` is
// its value. Nothing is done where it is empty, and for all calls but the first. Returns why there
// are no ranges where the profiler's library cannot be used, else an empty text.
std::string open_nvtx(const std::string& library);

}  // namespace annulus::abi

#endif  // ANNULUS_ABI_NVTX_H_
