#ifndef ANNULUS_ATTENTION_COST_PIPE_MODEL_H_
#define ANNULUS_ATTENTION_COST_PIPE_MODEL_H_

// From work to time, on paper: how many cycles a kernel would take on a device, and what would hold
// it up. Everything it returns is a prediction and is called one; no GPU has confirmed it. It is
// good for ordering configurations, not for figures.
//
//   const PipeDevice device = pipe_device(info);
//   const Prediction made = predict(device, config, dims, tiles, estimate_work(...), bytes);
//
// The model. Each multiprocessor has pipes that work beside one another; a tile asks each of them
// for so many cycles. One warp alone uses them one after another: its products (matrix pipe and
// shared memory overlap), then its softmax (special functions and issue slots overlap). w warps on
// a scheduler fill one another's gaps: a closed queueing network, whose throughput is at least
// w / (sum + (w - 1) largest) tiles in a cycle, and that bound is taken. A copy that does not
// arrive in time stops its CTA. CTAs are dealt to the multiprocessors in launch order as the
// hardware does, so the last wave and a row that is longer than the rest count as they would.
//
// How a family's CTA spends its time beside that is its own to say (Pace in kernels/family.h):
// which products it has, how many steps a warp has under way, and what makes it stand still.

#include <array>
#include <cstdint>

#include "attention/kernels/device_limits.h"
#include "attention/kernels/kernel_work.h"
#include "attention/tiles/kv_split.h"
#include "device/device_info.h"

namespace annulus::attention {

// What one multiprocessor does in a cycle, unless said otherwise.
struct PipeDevice {
  jit::Arch arch;
  int multiprocessors = 1;
  double clock_hertz = 0;
  double matrix_flop = 0;        // mma.sync, 16-bit operands, fp32 sums
  double wgmma_flop = 0;         // the same by wgmma; 0 where there is none
  double special_lanes = 0;      // results of special functions
  double issue_slots = 0;        // warp instructions
  double shared_wavefronts = 0;  // of 128 bytes
  double l2_bytes = 0;           // from L2
  double memory_bytes = 0;       // of the whole device
  double latency_cycles = 0;     // of a load from L2 under load

  // What limits the CTAs that one multiprocessor holds.
  int schedulers = 4;
  int max_threads = 0;
  int max_ctas = 0;
  int registers = 0;
  std::int64_t shared_bytes = 0;
  std::int64_t shared_bytes_reserved = 0;  // of each CTA
};

// Counts, sizes and clocks from the driver's attributes; rates per cycle by architecture, those of
// the nearest known one below for any other.
PipeDevice pipe_device(const device::DeviceInfo& info);

// CTAs that a multiprocessor holds at a time. registers 0: as predicted. 0 where not even one fits.
int resident_ctas(const PipeDevice& device, const KernelConfig& config, const Dims& dims,
                  int registers = 0);

// The same from what a plan knows of its device: the rates of its architecture at a usual clock.
PipeDevice pipe_device(const DeviceLimits& limits);

enum class Limit {
  kMatrix,     // tensor cores
  kSpecial,    // exponentials
  kIssue,      // instructions
  kShared,     // shared memory
  kL2,         // bytes from L2
  kMemory,     // bytes of the device's memory
  kLatency,    // copies that arrive too late
  kImbalance,  // the last wave, or a row longer than the rest
  kNothing,    // there is nothing to do
};
const char* to_string(Limit limit);  // "tensor cores", ...

struct Prediction {
  double predicted_cycles = 0;
  double predicted_micros = 0;
  Limit predicted_limit = Limit::kNothing;
  int predicted_resident = 0;      // CTAs of one multiprocessor
  double predicted_waves = 0;      // CTAs over what the device holds at a time
  double predicted_imbalance = 1;  // the busiest multiprocessor over the mean
  // Cycles of an average multiprocessor in which the pipe works: kMatrix to kMemory.
  std::array<double, 6> predicted_busy{};
};

// `bytes` pass the memory's interface at least (least_bytes). Infinite cycles where no CTA fits.
Prediction predict(const PipeDevice& device, const KernelConfig& config, const Dims& dims,
                   const TileCounts& tiles, const KernelWork& work, double bytes,
                   int registers = 0);

// What joining the parts of rows adds to them: a launch, and states that go through memory.
double merge_cycles(const PipeDevice& device, const KvSplit& split, const Problem& problem,
                    std::int64_t tile_rows);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_COST_PIPE_MODEL_H_
