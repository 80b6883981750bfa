#include "device/tensor_map.h"

#include <algorithm>

#include "base/fail.h"

namespace annulus::device {
namespace {

// Values of CUtensorMapDataType and the other enums of cuda.h.
constexpr int kUint8 = 0;
constexpr int kUint16 = 1;
constexpr int kNoInterleave = 0;
constexpr int kSwizzle64 = 2;
constexpr int kSwizzle128 = 3;
constexpr int kPromoteTo256 = 3;
constexpr int kFillZero = 0;

// Computes the stride in bytes of each dimension, the innermost first.
class StrideBytes {
 public:
  StrideBytes(std::int64_t columns, std::int64_t element)
      : element_(element), nested_(rounded(columns * element)) {}

  // The stride of a dimension with one element is never used, so the caller may give any value,
  // even one that the driver refuses. The stride of such a dimension is set to the span of the
  // dimensions before it.
  std::uint64_t next(std::int64_t extent, std::int64_t stride) {
    constexpr std::int64_t kMax = (std::int64_t{1} << 40) - 16;
    const std::int64_t bytes = extent <= 1 ? nested_ : stride * element_;
    const std::int64_t count = std::max<std::int64_t>(1, extent);
    // No division is used, because each run would do twelve of them.
    std::int64_t span = 0;
    const bool over = __builtin_mul_overflow(bytes, count, &span);
    nested_ = bytes > 0 && !over && span <= kMax ? std::max(nested_, span) : kMax;
    return static_cast<std::uint64_t>(bytes);
  }

 private:
  static std::int64_t rounded(std::int64_t bytes) { return (bytes + 15) / 16 * 16; }

  const std::int64_t element_;
  std::int64_t nested_;  // the bytes that the dimensions so far span
};

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
  StrideBytes stride(tensor.columns, tensor.element_bytes);
  const std::uint64_t rows = stride.next(tensor.rows, tensor.row_stride);
  const std::uint64_t heads = stride.next(tensor.heads, tensor.head_stride);
  const std::uint64_t batches = stride.next(tensor.batches, tensor.batch_stride);
  const std::uint64_t strides[] = {rows, heads, batches};
  const std::uint32_t box[] = {
      static_cast<std::uint32_t>(tensor.box_row_bytes / tensor.element_bytes), tensor.box_rows, 1,
      1};
  const std::uint32_t steps[] = {1, 1, 1, 1};
  abi::CUtensorMap map{};
  // without a current context, driver 580 returns CUDA_ERROR_INVALID_CONTEXT
  const ContextScope scope(context);
  const abi::CUresult result =
      encode(&map, tensor.element_bytes == 1 ? kUint8 : kUint16, 4, const_cast<void*>(tensor.data),
             extents, strides, box, steps, kNoInterleave,
             tensor.box_row_bytes == 64 ? kSwizzle64 : kSwizzle128, kPromoteTo256, kFillZero);
  // Any other error, such as in the child of a fork(), does not concern the tensor.
  if (result != abi::kCudaInvalidValue && result != abi::kCudaNotSupported) {
    abi::check(context.table(), result, "cuTensorMapEncodeTiled");
  }
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
