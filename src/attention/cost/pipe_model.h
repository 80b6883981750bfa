#ifndef ANNULUS_ATTENTION_COST_PIPE_MODEL_H_
#define ANNULUS_ATTENTION_COST_PIPE_MODEL_H_

// From work to time, on paper: how many cycles a kernel would take on a device, and what it would
// be bound by. Everything it returns is a prediction and is called so; no GPU has confirmed it. It
// is good for ordering configurations, not for absolute times.
//
//   const PipeDevice device = pipe_device(info);
//   const Prediction made = predict(device, config, dims, tiles, estimate_work(...), bytes);
//
// The model. Each multiprocessor has pipes that work in parallel, and a step of tiles takes some
// cycles of each. One warp alone uses them one after another: its products (matrix pipe and shared
// memory overlap), then its softmax (special functions and issue slots overlap). w warps on a
// scheduler fill one another's gaps: a closed queueing network, whose throughput is at least
// w / (sum + (w - 1) largest) steps in a cycle, and the model takes that bound. A copy that does
// not arrive in time stalls its CTA. CTAs are dealt to the multiprocessors in launch order as the
// hardware does, so that the last wave and a row that is longer than the rest are included.
//
// A family says how its CTA uses the pipes (Pace in attention/kernels/family.h): which products it
// has, how many steps a warp has under way, and which barriers stall it.

#include <array>
#include <cstdint>

#include "attention/kernels/device_limits.h"
#include "attention/kernels/kernel_work.h"
#include "attention/tiles/kv_split.h"
#include "device/device_info.h"

namespace annulus::attention {

// A device as the model sees it: rates of one multiprocessor in a cycle, unless said otherwise.
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

  // The resources that limit the CTAs of one multiprocessor.
  int schedulers = 4;
  int max_threads = 0;
  int max_ctas = 0;
  int registers = 0;
  std::int64_t shared_bytes = 0;
  std::int64_t shared_bytes_reserved = 0;  // of each CTA
};

// Counts, sizes and clocks come from the driver's attributes; rates are those of the architecture,
// or of the nearest known one below it.
PipeDevice pipe_device(const device::DeviceInfo& info);

// The number of CTAs that a multiprocessor holds at a time; 0 if none fits. With registers 0 it
// takes the predicted number of a thread's registers.
int resident_ctas(const PipeDevice& device, const KernelConfig& config, const Dims& dims,
                  int registers = 0);

// The device from what a plan knows of it: the rates of its architecture, at a usual clock and with
// usual sizes.
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

// Predicts the time of one launch. `bytes` is the traffic of device memory (least_bytes). The
// cycles are infinite if no CTA fits, and 0 if there are none.
Prediction predict(const PipeDevice& device, const KernelConfig& config, const Dims& dims,
                   const TileCounts& tiles, const KernelWork& work, double bytes,
                   int registers = 0);

// The cycles that joining the parts of split rows adds: a launch, and the traffic of their states.
double merge_cycles(const PipeDevice& device, const KvSplit& split, const Problem& problem,
                    std::int64_t tile_rows);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_COST_PIPE_MODEL_H_
