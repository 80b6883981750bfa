#ifndef ANNULUS_PTX_OPAQUE_CUH_
#define ANNULUS_PTX_OPAQUE_CUH_

namespace annulus::ptx {

// No instruction, any architecture: the compiler must take the value as new from here on. What is
// computed from it then stays where it is written. Otherwise the compiler would move it in front of
// the loop around it, where it would hold registers all the time.
__device__ __forceinline__ void make_opaque(int& value) { asm volatile("" : "+r"(value)); }

}  // namespace annulus::ptx

#endif  // ANNULUS_PTX_OPAQUE_CUH_
