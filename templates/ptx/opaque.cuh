#ifndef ANNULUS_PTX_OPAQUE_CUH_
#define ANNULUS_PTX_OPAQUE_CUH_

namespace annulus::ptx {

// No instruction, any architecture: the compiler must treat the value as new from here on. So
// computations with it stay where they are written. Otherwise the compiler would move them before
// the surrounding loop, where they would occupy registers all the time.
__device__ __forceinline__ void make_opaque(int& value) { asm volatile("" : "+r"(value)); }

}  // namespace annulus::ptx

#endif  // ANNULUS_PTX_OPAQUE_CUH_
