// The work of a kernel of the mma family, for each pipe. The numbers of instructions were counted
// in the kernels' PTX; instructions that ptxas folds into others are included.
// tests/attention/kernel_work_test.cc compares them with counts of the simulator.

#include "attention/kernels/mma/config.h"
#include "attention/kernels/mma/family.h"

namespace annulus::attention {
namespace {

// The tile of one warp in pieces of 16 rows or columns: `rows` pieces of query rows, `columns`
// pieces of keys, and `qk` and `v` pieces of the head dims.
struct WarpShape {
  double warps, rows, columns, qk, v;  // pieces of 16, except for `warps`
};

WarpShape warp_shape(const MmaConfig& config, const Dims& dims) {
  return {static_cast<double>(config.warps), config.tile_rows / (16.0 * config.warps),
          config.tile_columns / 16.0, static_cast<double>(dims.qk) / 16.0,
          static_cast<double>(dims.v) / 16.0};
}

}  // namespace

KernelWork mma_tile_work(const KernelConfig& any, const KernelFeatures& features,
                         const TileContext& context) {
  const MmaConfig config = mma_config(any);
  const auto [warps, rows, columns, qk, v] = warp_shape(config, features.dims);
  const double elements = rows * columns * 8;  // scores of a lane
  const double bytes = 2.0 * 16 * columns * 16 * (qk + v);
  const double products = 2 * rows * columns * (qk + v);  // mma.sync of a warp
  const double fragments = columns * (qk + v) + (config.query_in_registers ? 0 : rows * qk);
  const double copies = bytes / 16 / (32 * warps);
  const bool softcap = features.score == kernels::Score::kSoftcap;

  KernelWork work;
  work.matrix_flop = warps * products * (2 * 16 * 8 * 16);
  // One exponential for each element, and two more for the tanh of a soft-cap (an exponential and a
  // reciprocal). The correction of each of a lane's two rows of a piece takes one more, which all
  // four lanes of a quad compute.
  work.special_lanes =
      32 * warps * (elements * ((softcap ? 3 : 1) + features.score_mod.special) + 2 * rows);
  work.shared_wavefronts = warps * 4 * fragments + bytes / 128;
  work.read_bytes = bytes;
  work.barriers = warps * (config.stages == 1 ? 2 : 1);
  // Each element takes a zero, a maximum, the argument of its exponential, the exponential, an
  // addition and half a conversion: 5.5. Each output takes its rescaling. Each of a lane's rows
  // takes 16: two exchanges between lanes for the maximum, the correction and the row sum. Each
  // product takes one instruction, each fragment an address and a load, and each copy 6.75: the
  // copy, its two addresses and the test whether its row exists. The last number is for the loop.
  double instructions = products + 2 * fragments + 6.75 * copies + 5.5 * elements + rows * v * 8 +
                        rows * 2 * 16 + (config.stages == 1 ? 107 : 87);
  instructions += elements * context.score;
  instructions += elements * context.mask;
  work.warp_instructions = warps * instructions;
  return work;
}

// The work of a CTA for each tile row. Q is read through shared memory, and read once more if it is
// kept in registers; a carried state is read or written in fp32; O goes through shared memory. The
// numbers of instructions are about 300 for the row, 30 for each stage that the pipeline fills
// after the first, and one to three for each output of a lane.
KernelWork mma_row_work(const KernelConfig& any, const KernelFeatures& features) {
  const MmaConfig config = mma_config(any);
  const auto [warps, rows, columns, qk, v] = warp_shape(config, features.dims);
  const double query_bytes = 2.0 * config.tile_rows * 16 * qk;
  const double output_elements = rows * v * 8;  // outputs of a lane
  KernelWork work;
  work.read_bytes = query_bytes;
  work.shared_wavefronts = query_bytes / 128;
  if (config.query_in_registers) work.shared_wavefronts += warps * 4 * rows * qk;
  const double state_bytes = 4.0 * config.tile_rows * (16 * v + 2);  // acc, m and l of each row
  double instructions =
      300 + 30 * (config.stages - 1) + query_bytes / 16 / (32 * warps) * 1.5 + output_elements;
  if (features.carry_in) {
    work.read_bytes += state_bytes;
    instructions += output_elements;
  }
  if (features.carry_out) {
    work.written_bytes = state_bytes;
    instructions += output_elements * 2;
  } else {
    // O is written to shared memory in pairs of elements, and from there in pieces of 16 bytes.
    const double output_bytes = 2.0 * config.tile_rows * 16 * v;
    work.written_bytes = output_bytes;
    work.shared_wavefronts += warps * output_elements / 2 + output_bytes / 128;
    instructions += output_elements * 3.3 + output_bytes / 16 / (32 * warps) * 3;
    // All lanes compute the inverse of each row's sum, and one lane of four computes its logarithm.
    work.special_lanes = warps * rows * 2 * (32 + 8);
  }
  work.warp_instructions = warps * instructions;
  return work;
}

}  // namespace annulus::attention
