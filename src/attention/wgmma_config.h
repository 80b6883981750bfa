#ifndef ANNULUS_ATTENTION_WGMMA_CONFIG_H_
#define ANNULUS_ATTENTION_WGMMA_CONFIG_H_

// The configurations of the wgmma family: what they take and which are legal. Everybody else asks
// kernel_config.h, which knows both families.

#include <cstdint>
#include <optional>
#include <string>

#include "attention/dims.h"
#include "attention/kernel_config.h"
#include "jit/arch.h"

namespace annulus::attention {

// Whether O has shared memory of its own. Else it leaves through that of Q, and the next Q waits
// for it.
bool output_apart(const KernelConfig& config, const Dims& dims);

// Steps of 8-bit elements after which the output is put by in fp32, because tensor cores add their
// products up with few bits. 0 where there is no room: their products with V then come a few
// columns at a time, each part added to the output in fp32 (kernels/wgmma/parts.cuh).
int promote_steps(const KernelConfig& config, const Dims& dims);

// Q, stages of K and V (of 8-bit elements V twice), O where it lies apart, what is put by,
// barriers: the layout of wgmma_forward.
std::int64_t wgmma_shared_bytes(const KernelConfig& config, const Dims& dims);

// Scores, their powers as elements, output and, where it stays, Q.
std::int64_t wgmma_fragment_registers(const KernelConfig& config, const Dims& dims);

std::optional<std::string> why_illegal_wgmma(const KernelConfig& config, const Dims& dims,
                                             jit::Arch arch);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_WGMMA_CONFIG_H_
