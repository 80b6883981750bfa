#ifndef ANNULUS_BATCH_BATCH_MAPS_H_
#define ANNULUS_BATCH_BATCH_MAPS_H_

// The tensor maps with which chunk_wgmma_forward copies Q, K and V
// (templates/params/batch_map_params.h).

#include "annulus/batch.h"
#include "batch/batch_plan.h"
#include "device/context.h"
#include "params/batch_map_params.h"

namespace annulus::batch {

// Throws Error{kUnsupported} for strides that no tensor map has, although the operands' other rules
// allow them, and throws as device::encode_tensor_map does. It accesses no device memory. Requires:
// the kernel of `of` copies by maps.
kernels::BatchMaps batch_maps(const device::Context& context, const BatchPlanData& plan,
                              const ClassPlan& of, const BatchOperands& operands);

}  // namespace annulus::batch

#endif  // ANNULUS_BATCH_BATCH_MAPS_H_
