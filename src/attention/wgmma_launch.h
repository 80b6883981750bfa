#ifndef ANNULUS_ATTENTION_WGMMA_LAUNCH_H_
#define ANNULUS_ATTENTION_WGMMA_LAUNCH_H_

// What the wgmma family is launched with besides AttentionParams: the order of its work and the
// tensor maps of a run (templates/kernels/wgmma_params.h).

#include <optional>
#include <string>

#include "annulus/attention.h"
#include "attention/kernel_config.h"
#include "attention/plan.h"
#include "device/context.h"
#include "kernels/wgmma_params.h"

namespace annulus::attention {

// The order of the work of a launch of `batches`, with `rows` tile rows or parts for each head.
kernels::WorkParams work_params(const KernelConfig& config, const Problem& problem,
                                const WorkGroup& group, std::int64_t rows, std::int64_t batches);

// A sentence that says why a tensor with such strides has no tensor map, or nothing where all have
// one. Pure: what the driver takes is documented.
std::optional<std::string> why_no_tensor_maps(const Problem& problem,
                                              const OperandStrides& strides);

// Throws Error{kUnsupported} for operands that the maps of a run could not be made for.
void check_tensor_maps(const Problem& problem, const Operands& operands);

// The maps of the batches of a launch. Throws as device::encode_tensor_map does.
kernels::TensorMaps tensor_maps(const device::Context& context, const KernelConfig& config,
                                const Problem& problem, const Operands& operands,
                                const BatchRange& range);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_WGMMA_LAUNCH_H_
