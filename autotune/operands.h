#ifndef ANNULUS_AUTOTUNE_OPERANDS_H_
#define ANNULUS_AUTOTUNE_OPERANDS_H_

// Operands for trying a kernel: contiguous [B, S, H, D] tensors of standard normal numbers. Zeros
// would draw less power and would run faster than real data.
//
// The first part has what operands of problems and of batches (batch_operands.h) have in common.

#include <cstdint>
#include <vector>

#include "attention/oracle/reference.h"
#include "base/random.h"
#include "device/buffer.h"

namespace annulus::autotune {

// The number of random values for a tensor that is only timed. Drawing more values would take
// longer than the measurements.
inline constexpr std::int64_t kTimedElements = std::int64_t{1} << 22;

// The bytes of `count` standard normal numbers.
std::vector<std::uint8_t> normal_bytes(base::Random& random, std::int64_t count, Dtype dtype);
// A state that other keys could have left. Some rows have seen no keys.
HostState random_state(base::Random& random, std::int64_t rows, std::int64_t dim_v);

// A buffer of `bytes` bytes that is filled with repeated copies of `from`.
device::Buffer repeated(const device::ContextPointer& context, std::size_t bytes,
                        const std::vector<std::uint8_t>& from);

template <typename T>
T* pointer(const device::Buffer& buffer) {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(buffer.address()));
}

// The data of rows of (query, head) in addition to Q: a state from other keys, and the outputs of a
// kernel, which are O with 16-bit elements and LSE, or a state.
struct RowFeatures {
  std::int64_t rows = 0;
  std::int64_t dim_v = 0;
  bool want_lse = false, carry_in = false, carry_out = false;
};

// Results in host memory, in the order of the rows.
struct HostRows {
  std::vector<std::uint16_t> o;  // [rows, Dv], empty with carry_out
  std::vector<float> lse;        // [rows] with want_lse
  HostState state;               // set with carry_out
};

// These rows on a device. Throws Error{kOutOfMemory, kDevice}.
struct DeviceRows {
  DeviceRows(const device::ContextPointer& context, const RowFeatures& features,
             const HostState& state_in);

  // Fills the kernel's outputs with NaN, so that elements which the kernel does not write are not
  // taken for results. The fill is ordered on the default stream.
  void forget_results() const;
  // Waits for the default stream.
  HostRows results() const;

  device::ContextPointer context;
  RowFeatures features;
  device::Buffer o, lse;
  device::Buffer acc_in, m_in, l_in, acc_out, m_out, l_out;
  // Null if the features do not have them.
  StatePointers state_in, state_out;
};

// The bytes of each tensor's elements, in the tensor's order. A tensor with fewer elements than the
// problem requires is repeated on the device. Scales are 1.
struct HostOperands {
  std::vector<std::uint8_t> q, k, v;
  HostState state_in;  // set with carry_in; some rows are empty

  // Requires: all tensors have all their elements.
  HostInputs inputs(const Problem& problem) const;
};

// Draws at most max_elements of each tensor; states are complete.
HostOperands random_operands(const Problem& problem, std::int64_t max_elements, std::uint64_t seed);

Strides q_strides(const Problem& problem);
Strides k_strides(const Problem& problem);
Strides v_strides(const Problem& problem);
Strides o_strides(const Problem& problem);

// The operands on a device, with memory for the kernel's outputs. Throws Error{kOutOfMemory,
// kDevice}.
struct DeviceOperands {
  DeviceOperands(const device::ContextPointer& context, const Problem& problem,
                 const HostOperands& host);

  device::Buffer q, k, v;
  DeviceRows rows;
  Operands operands;
};

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_OPERANDS_H_
