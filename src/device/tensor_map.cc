#include "device/tensor_map.h"

#include <algorithm>

#include "base/fail.h"

namespace annulus::device {
namespace {

// CUtensorMapDataType and so on: the numbers of cuda.h.
constexpr int kUint8 = 0;
constexpr int kUint16 = 1;
constexpr int kNoInterleave = 0;
constexpr int kSwizzle128 = 3;
constexpr int kPromoteTo256 = 3;
constexpr int kFillZero = 0;

constexpr std::int64_t kBoxBytes = 128;  // of a row

// A dimension of one element is never stepped along: any stride will do, and what the caller gives
// for it need not be one that the driver takes.
std::uint64_t stride_bytes(std::int64_t extent, std::int64_t stride, std::int64_t element) {
  constexpr std::uint64_t kAny = 16;
  return extent <= 1 ? kAny : static_cast<std::uint64_t>(stride * element);
}

}  // namespace

abi::CUtensorMap encode_tensor_map(const Context& context, const BoxedTensor& tensor) {
  const auto encode = context.table().tensor_map_encode_tiled;
  if (encode == nullptr) {
    base::fail(ErrorCode::kUnsupported,
               "this driver has no cuTensorMapEncodeTiled; tensor maps need driver 525 or newer");
  }
  const std::uint64_t extents[] = {
      static_cast<std::uint64_t>(tensor.columns),
      static_cast<std::uint64_t>(std::max<std::int64_t>(1, tensor.rows)),
      static_cast<std::uint64_t>(tensor.heads), static_cast<std::uint64_t>(tensor.batches)};
  const std::uint64_t strides[] = {
      stride_bytes(tensor.rows, tensor.row_stride, tensor.element_bytes),
      stride_bytes(tensor.heads, tensor.head_stride, tensor.element_bytes),
      stride_bytes(tensor.batches, tensor.batch_stride, tensor.element_bytes)};
  const std::uint32_t box[] = {static_cast<std::uint32_t>(kBoxBytes / tensor.element_bytes),
                               tensor.box_rows, 1, 1};
  const std::uint32_t steps[] = {1, 1, 1, 1};
  abi::CUtensorMap map{};
  const abi::CUresult result =
      encode(&map, tensor.element_bytes == 1 ? kUint8 : kUint16, 4, const_cast<void*>(tensor.data),
             extents, strides, box, steps, kNoInterleave, kSwizzle128, kPromoteTo256, kFillZero);
  if (result != abi::kCudaSuccess) {
    base::fail(
        ErrorCode::kInvalidArgument,
        "no tensor map for a tensor of {} x {} x {} x {} elements at {} with strides of {}, {} "
        "and {} elements of {} bytes (batch, row, head, column): strides have to be multiples of "
        "16 bytes, above 0 and below 2^40, the address a multiple of 16 (driver error {})",
        tensor.batches, tensor.rows, tensor.heads, tensor.columns, tensor.data, tensor.batch_stride,
        tensor.row_stride, tensor.head_stride, tensor.element_bytes, static_cast<int>(result));
  }
  return map;
}

}  // namespace annulus::device
