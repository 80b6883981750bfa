#ifndef ANNULUS_SIMULATOR_OPS_WGMMA_H_
#define ANNULUS_SIMULATOR_OPS_WGMMA_H_

// Between the instructions of wgmma (ops/wgmma.cc), the queue of products
// (ops/wgmma_queue.cc) and their arithmetic (ops/wgmma_compute.cc).

#include "simulator/machine/warpgroup.h"

namespace annulus::simulator {

// The running warp issues a product; `fresh` holds its operands, of the warp's own fragments of A
// only.
void issue_product(Warp& warp, MatrixProduct fresh);

// wgmma.wait_group: false where the warp has to wait for others of its warpgroup first.
bool wait_products(Warp& warp, std::uint32_t left);

// Computes what may be computed now of the warpgroup's products; between turns, when effects land
// at random.
void compute_some(Cta& cta);

// All four warps have issued the product: it reads B from now on.
void begin_product(Cta& cta, int warpgroup, const MatrixProduct& product);
// The product reads the rows of A, if that is in shared memory, that one warp has of D.
void begin_rows(Cta& cta, int warpgroup, const MatrixProduct& product, std::uint32_t warp);

// D = A B (+ D) for the rows of these warps.
void compute(Cta& cta, int warpgroup, const MatrixProduct& product, std::uint32_t warps);

// Fills in where in shared memory the 16-byte chunks of the operands are: those of A, unless it is
// in registers, then those of B. R rows are 64 of A, n of B.
//   K-major:   [row][2], 16 bytes along K each
//   MN-major:  [k][R / 8], 8 elements of 16 bits along M or N each
// Throws Fault where a descriptor is no good.
void locate_operands(const Cta& cta, MatrixProduct& product);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_OPS_WGMMA_H_
