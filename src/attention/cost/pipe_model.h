#ifndef ANNULUS_ATTENTION_COST_PIPE_MODEL_H_
#define ANNULUS_ATTENTION_COST_PIPE_MODEL_H_

// Predicts how many cycles a kernel takes on a device, and what limits it. Nothing is measured
// here: the names of all results begin with "predicted". Some of its constants (pipe_constants.def)
// are set by published times of other projects' kernels; docs/performance.md shows what it predicts
// for those kernels, and for other kernels whose times were not used to set constants.
//
//   const PipeDevice device = pipe_device(info);
//   const Prediction made = predict(device, config, dims, tiles, estimate_work(...), bytes);
//
// The model. Each multiprocessor has pipes that work in parallel, and a step of tiles takes some
// cycles of each: a_1, a_2, ... One warp alone would use them one after another, in their sum. n
// warps on a scheduler fill one another's gaps, but not all of them: the model takes the norm
// (a_1^p + a_2^p + ...)^(1/p), which is the sum for p = 1 and the maximum for p = infinity. The
// exponent p grows with n. Bytes from L2 arrive by copies that run ahead, so they add nothing
// unless they take longer than everything else. A copy that does not arrive in time stalls its CTA.
// The first step of a row overlaps with no other step of its CTA. Works are dealt to the
// multiprocessors as the kernel deals them, so that the last wave and a row that is longer than the
// rest are included.
//
// Busy tensor cores draw the most power, and a chip at its power limit lowers its clock. The model
// lowers the clock in proportion to the use of the tensor cores.
//
// A family describes how its CTA uses the pipes (Pace in attention/kernels/family.h): which
// products it has, how many steps of a warp overlap, which barriers stall the warp, and how its
// works are dealt out.

#include <array>
#include <cstdint>
#include <functional>

#include "attention/cost/pipe_constants.h"
#include "attention/kernels/device_limits.h"
#include "attention/kernels/family.h"
#include "attention/kernels/kernel_work.h"
#include "attention/kernels/launch.h"
#include "attention/tiles/kv_split.h"
#include "device/device_info.h"

namespace annulus::attention {

// A device as the model describes it. The numbers are rates of one multiprocessor in a cycle,
// unless their comments state otherwise.
struct PipeDevice {
  jit::Arch arch;
  int multiprocessors = 1;
  double clock_hertz = 0;         // the clock that the driver reports
  double loaded_clock_hertz = 0;  // the clock if tensor cores are always busy
  double matrix_flop = 0;         // mma.sync, 16-bit operands, fp32 sums
  double wgmma_flop = 0;          // wgmma, same operands and sums; 0 without wgmma
  double special_lanes = 0;       // results of special functions
  double issue_slots = 0;         // warp instructions
  double shared_wavefronts = 0;   // accesses of 128 bytes
  double l2_bytes = 0;            // bytes from L2
  double memory_bytes = 0;        // bytes from memory, for the whole device
  double latency_cycles = 0;      // the latency of a load from L2 on a busy device
  double overlap = 2;             // PipeConstants::overlap
  double launch_cycles = 0;       // one launch, with its first and last accesses
  double barrier_cycles = 0;      // one barrier at which no warp is late

  // The resources that limit the CTAs of one multiprocessor.
  int schedulers = 4;
  int max_threads = 0;
  int max_ctas = 0;
  int registers = 0;
  std::int64_t shared_bytes = 0;
  std::int64_t shared_bytes_reserved = 0;  // added to the shared memory of each CTA
};

// Makes the device of a driver's attributes. Counts, sizes, clocks and the rate of memory are
// attributes. The rates of a multiprocessor belong to the architecture, or to the nearest known
// architecture below it. The rest is `constants`. Attributes that are absent or absurd (a clock of
// 0 or of a terahertz) are replaced by the values of the architecture's usual device.
PipeDevice pipe_device(const device::DeviceInfo& info, const PipeConstants& constants = {});

// The number of CTAs that a multiprocessor holds at a time; 0 if none fits. With registers 0 it
// takes the predicted number of a thread's registers.
int resident_ctas(const PipeDevice& device, const KernelConfig& config, const Dims& dims,
                  int registers = 0);

// Makes a device from the limits that a plan has, with usual sizes for the rest.
PipeDevice pipe_device(const DeviceLimits& limits);

// Cycles that each pipe of one multiprocessor is busy for one step of one CTA.
struct StepCycles {
  double matrix = 0, special = 0, issue = 0, shared = 0, l2 = 0;
};

// How fast CTAs compute their steps, as far as their multiprocessor limits them.
struct StepPace {
  StepCycles each;
  double turn = 0;   // cycles in which each of the CTAs that share a multiprocessor does one step
  double late = 0;   // cycles that a CTA then waits for its copies
  double frame = 0;  // cycles of a work in addition to its steps

  double step() const { return turn + late; }
};

// The pace of `together` CTAs on a multiprocessor, if `steps` steps have this work.
StepPace pace_steps(const PipeDevice& device, const CtaShape& cta, const Pace& pace,
                    const KernelWork& work, double steps, double together);

enum class Limit {
  kMatrix,     // tensor cores
  kSpecial,    // exponentials
  kIssue,      // instructions
  kShared,     // shared memory
  kL2,         // bytes from L2
  kMemory,     // bytes of the device's memory
  kLatency,    // copies that arrive too late
  kImbalance,  // the last wave, or a row longer than the rest
  kNothing,    // no work
};
const char* to_string(Limit limit);  // "tensor cores", ...

struct Prediction {
  double predicted_cycles = 0;  // at the clock that the driver reports
  double predicted_micros = 0;
  double predicted_hertz = 0;  // the clock under this load
  Limit predicted_limit = Limit::kNothing;
  int predicted_resident = 0;  // CTAs of one multiprocessor
  double predicted_waves = 0;  // number of CTAs, divided by the number that the device holds at a
                               // time
  double predicted_imbalance = 1;  // busy time of the busiest multiprocessor over the mean
  // The cycles in which each pipe of an average multiprocessor works, from kMatrix to kMemory.
  std::array<double, 6> predicted_busy{};
};

// Predicts the time of one launch. With Dealt::kAsPays, the function also chooses the head start.
// `bytes` is the traffic of device memory (least_bytes). The cycles are infinite if no CTA fits,
// and 0 if there are none.
Prediction predict(const PipeDevice& device, const KernelConfig& config, const Dims& dims,
                   const TileCounts& tiles, const KernelWork& work, double bytes, int registers = 0,
                   Dealt dealt = Dealt::kAsPays, const HeadStart& head_start = {});

// How a kernel's works are dealt out, and how long each takes in the model.
struct DealtWorks {
  // Whether works are drawn from a counter, because they would end unevenly if they were counted
  // off. False for kernels that cannot draw works.
  bool drawn = false;
  HeadStart head_start;     // if works are drawn
  double frame_cycles = 0;  // cycles of a work without its tiles
  double tile_cycles = 0;   // cycles of each of its tiles
};
DealtWorks deal_works(const PipeDevice& device, const KernelConfig& config, const Dims& dims,
                      const TileCounts& tiles, const KernelWork& work,
                      Dealt dealt = Dealt::kAsPays);

// The range of a predicted time. Each constant in turn goes through its interval, and the
// logarithms of the effects are added in quadrature.
struct PredictedRange {
  double least = 0;
  double most = 0;
};
// The range around `micros`, the prediction for `info`. The function `predicted` returns the time
// on a device; it is called with each constant at both ends of its interval.
PredictedRange predict_range(const device::DeviceInfo& info, double micros,
                             const std::function<double(const PipeDevice& device)>& predicted);

// The cycles that joining the parts of split rows adds: one launch, and the traffic of their
// states.
double merge_cycles(const PipeDevice& device, const KvSplit& split, const Problem& problem,
                    std::int64_t tile_rows);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_COST_PIPE_MODEL_H_
