#ifndef ANNULUS_PTX_LDMATRIX_CUH_
#define ANNULUS_PTX_LDMATRIX_CUH_

// Loads of 8x8 matrices of 16-bit elements from shared memory into the fragments of mma.sync. Lane
// l gives the address of row l % 8 of matrix l / 8 (16 bytes, 16-byte aligned). All 32 lanes take
// part.

namespace annulus::ptx {

// ldmatrix.x4: PTX 6.5, sm_75. Lane l receives elements (l / 4, 2 (l % 4) and the next).
__device__ __forceinline__ void load_matrices(unsigned (&matrices)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
               : "r"(address)
               : "memory");
}

// ldmatrix.x4.trans: PTX 6.5, sm_75. Like load_matrices, but each matrix is transposed.
__device__ __forceinline__ void load_matrices_transposed(unsigned (&matrices)[4],
                                                         unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
               : "r"(address)
               : "memory");
}

}  // namespace annulus::ptx

#endif  // ANNULUS_PTX_LDMATRIX_CUH_
