#ifndef ANNULUS_DEVICE_TENSOR_MAP_H_
#define ANNULUS_DEVICE_TENSOR_MAP_H_

// Tensor maps for the tensor memory accelerator of sm_90, encoded by cuTensorMapEncodeTiled of the
// CUDA driver API. Elements have 16 or 8 bits. The rows of a box have 128 or 64 bytes and are
// swizzled.

#include <cstdint>

#include "device/context.h"

namespace annulus::device {

// A tensor [batch, row, head, column], with the first three dimensions in any order, and the boxes
// that copies take from it. A box has box_row_bytes bytes of columns by `box_rows` rows of one
// head. The swizzle spans the bytes of one row of the box. Strides count elements.
struct BoxedTensor {
  const void* data = nullptr;      // 16-byte aligned
  std::int64_t element_bytes = 2;  // 2 or 1
  std::int64_t columns = 0;        // contiguous
  std::int64_t rows = 0;
  std::int64_t heads = 0;
  std::int64_t batches = 0;
  std::int64_t row_stride = 0;  // multiples of 16 bytes
  std::int64_t head_stride = 0;
  std::int64_t batch_stride = 0;
  std::uint32_t box_rows = 0;        // 1 to 256
  std::int64_t box_row_bytes = 128;  // 128 or 64
};

// Encodes a tensor map with dimensions {columns, rows, heads, batches}. Elements outside read as
// zero. It runs on the host and accesses no device memory. Throws Error{kUnsupported} if the driver
// is too old. Throws Error{kInvalidArgument} if the driver does not support a stride: it is used
// but 0, it is not a multiple of 16 bytes, or it is at least 2^40 bytes.
abi::CUtensorMap encode_tensor_map(const Context& context, const BoxedTensor& tensor);

}  // namespace annulus::device

#endif  // ANNULUS_DEVICE_TENSOR_MAP_H_
