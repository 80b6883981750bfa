#ifndef ANNULUS_AUTOTUNE_OPERANDS_H_
#define ANNULUS_AUTOTUNE_OPERANDS_H_

// Operands for trying a kernel: contiguous [B, S, H, D] tensors of standard normal numbers. Zeros
// would draw less power and run faster than anything real.
//
// What operands of problems and of batches (batch_operands.h) are made of comes first.

#include <cstdint>
#include <vector>

#include "attention/oracle/reference.h"
#include "base/random.h"
#include "device/buffer.h"

namespace annulus::autotune {

// How many random numbers are drawn for a tensor that is only timed; drawing more would take longer
// than the measurements.
inline constexpr std::int64_t kTimedElements = std::int64_t{1} << 22;

// The bytes of `count` standard normal numbers.
std::vector<std::uint8_t> normal_bytes(base::Random& random, std::int64_t count, Dtype dtype);
// A state as other keys may have left it; some rows have seen none.
HostState random_state(base::Random& random, std::int64_t rows, std::int64_t dim_v);

// A buffer of `bytes` bytes, filled with those of `from` over and over.
device::Buffer repeated(const device::ContextPointer& context, std::size_t bytes,
                        const std::vector<std::uint8_t>& from);

template <typename T>
T* pointer(const device::Buffer& buffer) {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(buffer.address()));
}

// What rows of (query, head) have besides Q: a state that other keys left, and what a kernel
// writes, O of 16-bit elements and LSE or a state.
struct RowFeatures {
  std::int64_t rows = 0;
  std::int64_t dim_v = 0;
  bool want_lse = false, carry_in = false, carry_out = false;
};

// Results in host memory, in the order of the rows.
struct HostRows {
  std::vector<std::uint16_t> o;  // [rows, Dv], empty with carry_out
  std::vector<float> lse;        // [rows] with want_lse
  HostState state;               // with carry_out
};

// All of that on a device. Throws Error{kOutOfMemory, kDevice}.
struct DeviceRows {
  DeviceRows(const device::ContextPointer& context, const RowFeatures& features,
             const HostState& state_in);

  // Fills what the kernel writes with NaN, so that elements which it does not write are not taken
  // for an answer. Ordered on the default stream.
  void forget_results() const;
  // Waits for the default stream.
  HostRows results() const;

  device::ContextPointer context;
  RowFeatures features;
  device::Buffer o, lse;
  device::Buffer acc_in, m_in, l_in, acc_out, m_out, l_out;
  // Null where the features have none.
  StatePointers state_in, state_out;
};

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

  device::Buffer q, k, v;
  DeviceRows rows;
  Operands operands;
};

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_OPERANDS_H_
