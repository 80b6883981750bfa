#ifndef ANNULUS_PTX_STMATRIX_CUH_
#define ANNULUS_PTX_STMATRIX_CUH_

namespace annulus::ptx {

// stmatrix.x4: PTX 7.8, sm_90. The opposite of load_matrices (ptx/ldmatrix.cuh): stores four 8x8
// matrices of 16-bit elements, and lane l passes the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void store_matrices(unsigned address, unsigned a, unsigned b, unsigned c,
                                               unsigned d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
               "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}

}  // namespace annulus::ptx

#endif  // ANNULUS_PTX_STMATRIX_CUH_
