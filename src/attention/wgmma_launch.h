#ifndef ANNULUS_ATTENTION_WGMMA_LAUNCH_H_
#define ANNULUS_ATTENTION_WGMMA_LAUNCH_H_

// What the wgmma family is launched with besides AttentionParams: the order of its work and the
// tensor maps of a run (templates/kernels/wgmma_params.h).

#include "annulus/attention.h"
#include "attention/kernel_config.h"
#include "attention/plan.h"
#include "device/context.h"
#include "kernels/wgmma_params.h"

namespace annulus::attention {

// The order of the work of a launch of `batches`.
kernels::WorkParams work_params(const KernelConfig& config, const Problem& problem,
                                std::int64_t batches);

// The maps of the batches of a launch. Throws as device::encode_tensor_map does.
kernels::TensorMaps tensor_maps(const device::Context& context, const KernelConfig& config,
                                const Problem& problem, const Operands& operands,
                                const BatchRange& range);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_WGMMA_LAUNCH_H_
