#ifndef ANNULUS_SIMULATOR_OPS_WGMMA_H_
#define ANNULUS_SIMULATOR_OPS_WGMMA_H_

// Functions of wgmma that its three files share: the instructions (ops/wgmma.cc), the queue of
// products (ops/wgmma_queue.cc) and the arithmetic (ops/wgmma_compute.cc).

#include "simulator/machine/warpgroup.h"

namespace annulus::simulator {

// The running warp issues a product. `fresh` holds its operands. Of the fragments of A it holds
// only those of this warp.
void issue_product(Warp& warp, MatrixProduct fresh);

// Executes wgmma.wait_group. Returns false if the warp has to wait for other warps of its warpgroup
// first.
bool wait_products(Warp& warp, std::uint32_t left);

// Computes some of the products that may be computed now. It is called between turns if effects
// land at drawn moments.
void compute_some(Cta& cta);

// All four warps have issued the product, which reads B from now on.
void begin_product(Cta& cta, int warpgroup, const MatrixProduct& product);
// If A is in shared memory, the product reads the rows of A for the rows of D that this warp has.
void begin_rows(Cta& cta, int warpgroup, const MatrixProduct& product, std::uint32_t warp);

// D = A B (+ D) for the rows of these warps.
void compute(Cta& cta, int warpgroup, const MatrixProduct& product, std::uint32_t warps);

// Fills in the offsets in shared memory of the operands' 16-byte chunks. The chunks of A come
// first, unless A is in registers, and then the chunks of B. R is 64 for A and n for B.
//   K-major:   [row][2], 16 bytes along K each
//   MN-major:  [k][R / 8], 8 elements of 16 bits along M or N each
// Throws Fault if a descriptor is invalid.
void locate_operands(const Cta& cta, MatrixProduct& product);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_OPS_WGMMA_H_
