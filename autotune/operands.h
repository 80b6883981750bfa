#ifndef ANNULUS_AUTOTUNE_OPERANDS_H_
#define ANNULUS_AUTOTUNE_OPERANDS_H_

// Operands for trying a kernel: contiguous [B, S, H, D] tensors of standard normal numbers. Zeros
// would draw less power and run faster than anything real.

#include <cstdint>
#include <vector>

#include "attention/oracle/reference.h"
#include "device/buffer.h"

namespace annulus::autotune {

// The bytes of each tensor's elements, in its order. A tensor with fewer elements than the
// problem's is repeated on the device. Scales are 1.
struct HostOperands {
  std::vector<std::uint8_t> q, k, v;
  HostState state_in;  // with carry_in; some rows are empty

  // Requires: all tensors have all their elements.
  HostInputs inputs(const Problem& problem) const;
};

// Draws at most max_elements of each tensor; states are complete.
HostOperands random_operands(const Problem& problem, std::int64_t max_elements, std::uint64_t seed);

Strides q_strides(const Problem& problem);
Strides k_strides(const Problem& problem);
Strides v_strides(const Problem& problem);
Strides o_strides(const Problem& problem);

// The operands on a device with room for what the kernel writes. Throws
// Error{kOutOfMemory, kDevice}.
struct DeviceOperands {
  DeviceOperands(const device::ContextPointer& context, const Problem& problem,
                 const HostOperands& host);

  // Fills the kernel's outputs with NaN, so that elements which it does not write are not taken for
  // an answer. Ordered on the default stream.
  void forget_results() const;

  device::ContextPointer context;
  device::Buffer q, k, v, o, lse;
  device::Buffer acc_in, m_in, l_in, acc_out, m_out, l_out;
  Operands operands;
};

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_OPERANDS_H_
