#ifndef ANNULUS_DEVICE_TENSOR_MAP_H_
#define ANNULUS_DEVICE_TENSOR_MAP_H_

// Tensors as the tensor memory accelerator of sm_90 sees them: cuTensorMapEncodeTiled of the CUDA
// driver API, for elements of 16 or 8 bits in rows of 128-byte swizzled boxes.

#include <cstdint>

#include "device/context.h"

namespace annulus::device {

// A tensor [batch, row, head, column] in any order of the first three, and the boxes that copies
// take from it: 128 bytes of columns by `box_rows` rows of one head. Strides count elements.
struct BoxedTensor {
  const void* data = nullptr;      // 16-byte aligned
  std::int64_t element_bytes = 2;  // or 1
  std::int64_t columns = 0;        // next to one another
  std::int64_t rows = 0;
  std::int64_t heads = 0;
  std::int64_t batches = 0;
  std::int64_t row_stride = 0;  // multiples of 16 bytes
  std::int64_t head_stride = 0;
  std::int64_t batch_stride = 0;
  std::uint32_t box_rows = 0;  // 1 to 256
};

// Dimensions {columns, rows, heads, batches}; what lies outside reads as zero. Computes on the host
// and touches no memory of the device. Throws Error{kUnsupported} where the driver is too old, and
// Error{kInvalidArgument} for what it does not take: strides that are 0 where they are used, no
// multiples of 16 bytes, or 2^40 bytes and more.
abi::CUtensorMap encode_tensor_map(const Context& context, const BoxedTensor& tensor);

}  // namespace annulus::device

#endif  // ANNULUS_DEVICE_TENSOR_MAP_H_
