#ifndef ANNULUS_SIM_OPS_WGMMA_H_
#define ANNULUS_SIM_OPS_WGMMA_H_

// Between the instructions of wgmma (ops/wgmma.cc), the queue of products (sim/warpgroup.cc) and
// their arithmetic (ops/wgmma_compute.cc).

#include "sim/warpgroup.h"

namespace annulus::sim {

// The running warp issues a product; `fresh` holds its operands, of the warp's own fragments of A
// only.
void issue_product(Context& context, MatrixProduct fresh);

// wgmma.wait_group: false where the warp has to wait for others of its warpgroup first.
bool wait_products(Context& context, std::uint32_t left);

// All four warps have issued the product: it reads B from now on.
void begin_product(Context& context, int warpgroup, const MatrixProduct& product);
// The product reads the rows of A, if that is in shared memory, that one warp has of D.
void begin_rows(Context& context, int warpgroup, const MatrixProduct& product, std::uint32_t warp);

// D = A B (+ D) for the rows of these warps.
void compute(Context& context, int warpgroup, const MatrixProduct& product, std::uint32_t warps);

// Fills in where in shared memory the 16-byte chunks of the operands are: those of A, unless it is
// in registers, then those of B. R rows are 64 of A, n of B.
//   K-major:   [row][2], 16 bytes along K each
//   MN-major:  [k][R / 8], 8 elements of 16 bits along M or N each
// Throws Fault where a descriptor is no good.
void locate_operands(const Context& context, MatrixProduct& product);

}  // namespace annulus::sim

#endif  // ANNULUS_SIM_OPS_WGMMA_H_
