#ifndef ANNULUS_ATTENTION_KERNELS_KERNEL_WORK_H_
#define ANNULUS_ATTENTION_KERNELS_KERNEL_WORK_H_

// The work of a kernel for each pipe of the chip: estimated from its configuration and the tiles it
// visits, or counted by a simulated device. Work is not time; attention/cost/pipe_model.h converts
// it to cycles.

#include "abi/cuda_types.h"
#include "attention/kernels/kernel_config.h"
#include "attention/kernels/kernel_source.h"
#include "attention/tiles/tile_counts.h"

namespace annulus::attention {

// Totals over all CTAs of a run.
struct KernelWork {
  double warp_instructions = 0;  // instructions issued
  double matrix_flop = 0;        // operations of the tensor cores
  double special_lanes = 0;      // results of the special-function unit
  double shared_wavefronts = 0;  // cycles of the shared memory of one multiprocessor
  double read_bytes = 0;         // fetched from L2 by multiprocessors
  double written_bytes = 0;
  double barriers = 0;  // counted once for each warp and barrier

  KernelWork& operator+=(const KernelWork& other);
};

// The facts that a tile's work depends on in addition to its configuration and features.
struct TileContext {
  // Instructions for one element of a lane, in addition to the instructions that every element
  // takes.
  double score = 0;      // making the score of the product
  double mask = 0;       // the mask; 0 in a full tile
  double row_steps = 1;  // steps of the tile's row
};

// The share of the steps of a row in which the max of at least one of a warp's 16 rows changes. In
// these steps a kernel that can skip rescaling may not skip it. The estimate assumes that the order
// of a row's keys is unrelated to their scores. Then the largest of j steps is the last one with
// probability 1 / j, and the maxima of 16 independent rows all stay the same with probability (1 -
// 1 / j)^16. The share is smaller if keys are large for all rows at once, and 1 if scores rise with
// the keys.
double moved_share(double row_steps);

// The estimated work of all tiles and all CTAs. Nothing is launched.
KernelWork estimate_work(const KernelConfig& config, const KernelFeatures& features,
                         const TileCounts& tiles);

// The work that a simulated device counted. Only the checked mode counts shared wavefronts.
KernelWork counted_work(const abi::SimulatorCounters& counters);

// The work of a whole problem, from the counted work of a part of it: each quantity is the estimate
// for the whole, times the ratio of counted to estimated work of the part.
KernelWork extend_work(const KernelWork& counted_part, const KernelWork& estimated_part,
                       const KernelWork& estimated_whole);

// Bytes of Q, K, V, O and a carried state, each counted once: the traffic of device memory if
// caches were perfect.
double least_bytes(const Problem& problem);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_KERNELS_KERNEL_WORK_H_
