#ifndef ANNULUS_TOOLS_BENCH_BATCH_SHAPES_H_
#define ANNULUS_TOOLS_BENCH_BATCH_SHAPES_H_

// Steps of decoding requests, and the predictions of the pipe model for them.

#include <span>
#include <string>
#include <vector>

#include "batch/batch_cost.h"
#include "device/device_info.h"

namespace annulus::bench {

// Requests of one query and `keys` keys each, in pages of 16 rows.
struct BatchShape {
  const char* name;
  std::int64_t requests, heads, kv_heads, keys, dim;
  double bar;  // the target share of the memory's rate for run(); 0: none
};

// The six shapes that the project aims to decode at the memory's rate.
std::span<const BatchShape> decode_shapes();

// A prediction for a shape on a device, with its plan.
struct PredictedBatch {
  batch::BatchPlanData plan;
  batch::StepPrediction made;
  attention::PredictedRange share;   // StepPrediction::share
  attention::PredictedRange micros;  // StepPrediction::predicted_micros
};
// Plans for the device, and predicts a step of all requests. `element_bytes` is the size of an
// element of K and V.
PredictedBatch predict_batch(const device::DeviceInfo& info, const BatchShape& shape,
                             double element_bytes = 2);

}  // namespace annulus::bench

#endif  // ANNULUS_TOOLS_BENCH_BATCH_SHAPES_H_
