#ifndef ANNULUS_SIMULATOR_OPS_WGMMA_H_
#define ANNULUS_SIMULATOR_OPS_WGMMA_H_

// What the instructions of wgmma (ops/wgmma.cc), the queue of products (ops/wgmma_queue.cc) and
// their arithmetic (ops/wgmma_compute.cc) call of each other.

#include "simulator/machine/warpgroup.h"

namespace annulus::simulator {

// The running warp issues a product. `fresh` holds its operands, with the fragments of A of this
// warp alone.
void issue_product(Warp& warp, MatrixProduct fresh);

// wgmma.wait_group: false where the warp has to wait for others of its warpgroup first.
bool wait_products(Warp& warp, std::uint32_t left);

// Computes some of the products that may be computed now. It is called between turns when effects
// land at drawn moments.
void compute_some(Cta& cta);

// All four warps have issued the product, which reads B from now on.
void begin_product(Cta& cta, int warpgroup, const MatrixProduct& product);
// The product reads, if A is in shared memory, those rows of A whose rows of D this warp has.
void begin_rows(Cta& cta, int warpgroup, const MatrixProduct& product, std::uint32_t warp);

// D = A B (+ D) for the rows of these warps.
void compute(Cta& cta, int warpgroup, const MatrixProduct& product, std::uint32_t warps);

// Fills in where in shared memory the 16-byte chunks of the operands are: those of A, unless it is
// in registers, then those of B. R is 64 for A and n for B.
//   K-major:   [row][2], 16 bytes along K each
//   MN-major:  [k][R / 8], 8 elements of 16 bits along M or N each
// Throws Fault where a descriptor is invalid.
void locate_operands(const Cta& cta, MatrixProduct& product);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_OPS_WGMMA_H_
