#ifndef ANNULUS_ATTENTION_KERNELS_KERNEL_WORK_H_
#define ANNULUS_ATTENTION_KERNELS_KERNEL_WORK_H_

// The work of a kernel for each pipe of the chip: estimated from its configuration and the tiles it
// visits, or counted by a simulated device. Work is not time; attention/cost/pipe_model.h makes
// cycles of it.

#include "abi/cuda_types.h"
#include "attention/kernels/kernel_config.h"
#include "attention/kernels/kernel_source.h"
#include "attention/tiles/tile_counts.h"

namespace annulus::attention {

// Totals over all CTAs of a run.
struct KernelWork {
  double warp_instructions = 0;  // issued
  double matrix_flop = 0;        // of the tensor cores
  double special_lanes = 0;      // results of the special-function unit
  double shared_wavefronts = 0;  // cycles of the shared memory of one multiprocessor
  double read_bytes = 0;         // that multiprocessors fetch from L2
  double written_bytes = 0;
  double barriers = 0;  // one per warp and barrier

  KernelWork& operator+=(const KernelWork& other);
};

// What a tile's work depends on beside its configuration and features.
struct TileContext {
  // Instructions for one element of a lane, in addition to those that every element takes.
  double score = 0;      // from the product to the score
  double mask = 0;       // for the mask; 0 in a full tile
  double row_steps = 1;  // steps of the tile's row
};

// The share of the steps of a row in which the max of at least one of a warp's 16 rows moves, so
// that a kernel which skips rescaling cannot skip it. It assumes that the order of a row's keys
// says nothing about their scores: then the largest of j steps is the last one with probability
// 1 / j, and 16 rows whose maxima are independent all stay with (1 - 1 / j)^16. Keys that are large
// for all rows at once make the share smaller, keys in rising order make it 1.
double moved_share(double row_steps);

// The work of all tiles and all CTAs. Nothing runs.
KernelWork estimate_work(const KernelConfig& config, const KernelFeatures& features,
                         const TileCounts& tiles);

// The work that a simulated device counted. Only the checked mode counts shared wavefronts.
KernelWork counted_work(const abi::SimulatorCounters& counters);

// The work of a whole problem, from the counted work of a part of it: each quantity is the estimate
// for the whole, times the ratio of counted to estimated work of the part.
KernelWork extend_work(const KernelWork& counted_part, const KernelWork& estimated_part,
                       const KernelWork& estimated_whole);

// Bytes of Q, K, V, O and a carried state, each once: the traffic of device memory with perfect
// caches.
double least_bytes(const Problem& problem);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_KERNELS_KERNEL_WORK_H_
