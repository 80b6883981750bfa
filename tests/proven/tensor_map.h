// Tensor maps of two dimensions, made with the driver's function as the runtime finds it.
#pragma once
#include <cudaTypedefs.h>

#include <type_traits>

#include "support.h"

namespace proven {

inline PFN_cuTensorMapEncodeTiled_v12000 encode_tiled() {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult result{};
  check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault,
                                         &result),
        "cuTensorMapEncodeTiled");
  if (!entry) check(1, "cudaGetDriverEntryPoint of cuTensorMapEncodeTiled");
  return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(entry);
}

// A box of `box_inner` x `box_outer` elements of a matrix with `outer` rows of `inner` elements.
// Rows are `stride` elements apart, and `swizzle` is in bytes. The size of T determines the element
// type: 4 bytes are f32, 2 bytes bf16, and 1 byte plain bytes.
template <typename T>
CUtensorMap tensor_map_2d(T* data, uint64_t inner, uint64_t outer, uint64_t stride,
                          uint32_t box_inner, uint32_t box_outer, int swizzle) {
  constexpr CUtensorMapDataType kType = sizeof(T) == 4   ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
                                        : sizeof(T) == 2 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                                         : CU_TENSOR_MAP_DATA_TYPE_UINT8;
  const CUtensorMapSwizzle mode = swizzle == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                                  : swizzle == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                  : swizzle == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                                                  : CU_TENSOR_MAP_SWIZZLE_NONE;
  CUtensorMap map;
  const cuuint64_t sizes[2] = {inner, outer}, strides[1] = {stride * sizeof(T)};
  const cuuint32_t box[2] = {box_inner, box_outer}, steps[2] = {1, 1};
  check(encode_tiled()(&map, kType, 2, data, sizes, strides, box, steps,
                       CU_TENSOR_MAP_INTERLEAVE_NONE, mode, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                       CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
        "cuTensorMapEncodeTiled");
  return map;
}

}  // namespace proven
