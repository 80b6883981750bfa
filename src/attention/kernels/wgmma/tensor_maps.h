#ifndef ANNULUS_ATTENTION_KERNELS_WGMMA_TENSOR_MAPS_H_
#define ANNULUS_ATTENTION_KERNELS_WGMMA_TENSOR_MAPS_H_

// The tensor maps with which the wgmma kernels copy tiles (templates/params/wgmma_params.h).

#include <optional>
#include <string>

#include "annulus/problem.h"
#include "attention/kernels/launch.h"
#include "attention/kernels/wgmma/config.h"
#include "device/context.h"
#include "params/wgmma_params.h"
#include "pattern/interval.h"

namespace annulus::attention {

// A sentence that states why a tensor with such strides has no tensor map, or nullopt if all
// tensors have one. The function does not call the driver: it follows the documentation of
// cuTensorMapEncodeTiled.
std::optional<std::string> why_no_tensor_maps(const Problem& problem,
                                              const OperandStrides& strides);

// The maps of the batches of a launch. The maps of K and V cover only the rows `keys`; copies of
// other rows are zeros. Throws as device::encode_tensor_map does.
kernels::TensorMaps tensor_maps(const device::Context& context, const WgmmaConfig& config,
                                const Problem& problem, const Operands& operands,
                                const BatchRange& range, const pattern::Interval& keys);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_KERNELS_WGMMA_TENSOR_MAPS_H_
