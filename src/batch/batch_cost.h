#ifndef ANNULUS_BATCH_BATCH_COST_H_
#define ANNULUS_BATCH_BATCH_COST_H_

// Predicts the time of a step of a batch on a device: the pipe model (attention/cost/pipe_model.h)
// for decode_forward and combine_parts. Nothing here is measured; docs/performance.md lists the
// assumptions.
//
// The model. The works of a step are listed and dealt out as prepare_batch and decode_forward do. A
// CTA takes a work's first loads one after another (its record, its tile of rows, the page, the
// keys), and then computes its steps at the pace that the pipes of its multiprocessor allow. The
// pauses before the first few works of all CTAs are at the same time, and memory is idle during
// them. While all CTAs together need more bytes per cycle than memory delivers, they share its
// bandwidth. When enough CTAs have ended, the others run at their own pace. Joining is a launch
// whose threads load the states of a row's parts a few at a time.

#include <cstdint>
#include <span>

#include "attention/cost/pipe_model.h"
#include "attention/kernels/kernel_work.h"
#include "batch/batch_plan.h"

namespace annulus::batch {

// The work of decode_forward for one tile of keys, and its work for a part with `rows` rows of
// (query, head) without its tiles. Instructions are PTX instructions, as the simulator counts them;
// tools/bench/batch_bench compares the two.
attention::KernelWork decode_tile_work(const KernelConfig& config, const attention::Dims& dims);
attention::KernelWork decode_part_work(const KernelConfig& config, const attention::Dims& dims,
                                       std::int64_t rows);

// A request as its kernel computes it: its queries, and the keys that they see.
struct StepRequest {
  std::int64_t queries = 1;
  std::int64_t keys = 0;
};

// A predicted time of run() in microseconds, and its components.
struct StepPrediction {
  double predicted_micros = 0;
  double keys_micros = 0;    // reading K and V at the rate of the device's memory
  double launch_micros = 0;  // the launches of run()
  double first_micros = 0;   // the time until the first keys arrive
  double uneven_micros = 0;  // other bytes, pauses between works, and CTAs that end before others
  double join_micros = 0;    // joining parts, without its launch
  double busiest = 1;  // the keys of the CTA with the most keys, divided by the mean of all CTAs
  // The time of prepare(). All layers of a step share it, so it is not part of predicted_micros.
  double predicted_prepare_micros = 0;

  // The share of the memory's rate that run() reaches; 1 if it is as fast as just reading K and V.
  double share() const { return predicted_micros > 0 ? keys_micros / predicted_micros : 0; }
};

// Predicts a step of requests that `plan` computes. It reads all fields of `plan` but the lists and
// the specs. `element_bytes` is the size of an element of K and V.
StepPrediction predict_step(const attention::PipeDevice& device, const BatchProblem& problem,
                            const ClassPlan& plan, std::span<const StepRequest> requests,
                            double element_bytes = 2);

}  // namespace annulus::batch

#endif  // ANNULUS_BATCH_BATCH_COST_H_
