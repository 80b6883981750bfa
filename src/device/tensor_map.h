#ifndef ANNULUS_DEVICE_TENSOR_MAP_H_
#define ANNULUS_DEVICE_TENSOR_MAP_H_

// Tensor maps for the tensor memory accelerator of sm_90, made by cuTensorMapEncodeTiled of the
// CUDA driver API, for elements of 16 or 8 bits in boxes whose rows have 128 or 64 bytes
// and are swizzled.

#include <cstdint>

#include "device/context.h"

namespace annulus::device {

// A tensor [batch, row, head, column] in any order of the first three, and the boxes that copies
// take from it: box_row_bytes bytes of columns by `box_rows` rows of one head. The swizzle has as
// many bytes as a row of the box. Strides count elements.
struct BoxedTensor {
  const void* data = nullptr;      // 16-byte aligned
  std::int64_t element_bytes = 2;  // or 1
  std::int64_t columns = 0;        // contiguous
  std::int64_t rows = 0;
  std::int64_t heads = 0;
  std::int64_t batches = 0;
  std::int64_t row_stride = 0;  // multiples of 16 bytes
  std::int64_t head_stride = 0;
  std::int64_t batch_stride = 0;
  std::uint32_t box_rows = 0;        // 1 to 256
  std::int64_t box_row_bytes = 128;  // or 64
};

// Makes a tensor map with dimensions {columns, rows, heads, batches}; elements outside read as
// zero. It runs on the host and touches no device memory. Throws Error{kUnsupported} where the
// driver is too old, and Error{kInvalidArgument} for strides that the driver does not take: 0 where
// the stride is used, no multiple of 16 bytes, or 2^40 bytes and more.
abi::CUtensorMap encode_tensor_map(const Context& context, const BoxedTensor& tensor);

}  // namespace annulus::device

#endif  // ANNULUS_DEVICE_TENSOR_MAP_H_
