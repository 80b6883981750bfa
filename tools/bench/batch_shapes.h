#ifndef ANNULUS_TOOLS_BENCH_BATCH_SHAPES_H_
#define ANNULUS_TOOLS_BENCH_BATCH_SHAPES_H_

// Steps of decoding requests about which the pipe model is asked, and what it says.

#include <span>
#include <string>
#include <vector>

#include "batch/batch_cost.h"
#include "device/device_info.h"

namespace annulus::bench {

// Requests of one query each and as many keys, in pages of 16.
struct BatchShape {
  const char* name;
  std::int64_t requests, heads, kv_heads, keys, dim;
  double bar;  // the share of the memory's rate that run() should reach; 0: none
};

// The six shapes that the project set out to decode at the memory's rate.
std::span<const BatchShape> decode_shapes();

// A prediction for a shape on a device, with the plan that it is for.
struct PredictedBatch {
  batch::BatchPlanData plan;
  batch::StepPrediction made;
  attention::PredictedRange share;   // StepPrediction::share
  attention::PredictedRange micros;  // StepPrediction::predicted_micros
};
// Plans for the device, and predicts the step of all requests. `element_bytes` is that of K and V.
PredictedBatch predict_batch(const device::DeviceInfo& info, const BatchShape& shape,
                             double element_bytes = 2);

}  // namespace annulus::bench

#endif  // ANNULUS_TOOLS_BENCH_BATCH_SHAPES_H_
