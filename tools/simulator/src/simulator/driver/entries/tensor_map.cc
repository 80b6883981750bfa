// Tensor maps are computed on the host. The tensor's memory is not touched. Two results follow
// driver 580.159 on an H200 and are not in CUDA's documentation. CUDA_ERROR_INVALID_CONTEXT is
// returned if no context is current. CUDA_ERROR_INVALID_VALUE is returned if the pointer to strides
// is null, even for a tensor of one dimension, which has no strides.

#include <span>

#include "simulator/driver/entries/entries.h"
#include "simulator/driver/objects/state.h"
#include "simulator/machine/tensor_map.h"

namespace annulus::simulator::driver::entry {

static_assert(sizeof(TensorMap) == sizeof(CUtensorMap));
static_assert(alignof(TensorMap) <= alignof(CUtensorMap));

// The alignment of `map` that the documentation requires. The header of CUDA 13 aligns its type to
// 128.
constexpr std::uintptr_t kMapAlignment = 64;

CUresult tensor_map_encode_tiled(CUtensorMap* map, int type, std::uint32_t rank, void* address,
                                 const std::uint64_t* dims, const std::uint64_t* strides,
                                 const std::uint32_t* box, const std::uint32_t* element_strides,
                                 int interleave, int swizzle, int promotion, int fill) {
  return guarded([&]() -> CUresult {
    (void)current_context();
    if (map == nullptr || dims == nullptr || strides == nullptr || box == nullptr ||
        element_strides == nullptr || reinterpret_cast<std::uintptr_t>(map) % kMapAlignment != 0 ||
        rank == 0 || rank > kMaxTensorRank) {
      return kCudaInvalidValue;
    }
    const TensorMapRequest request{.type = type,
                                   .rank = rank,
                                   .address = reinterpret_cast<std::uint64_t>(address),
                                   .dims = {dims, rank},
                                   .strides = {strides, rank - 1},
                                   .box = {box, rank},
                                   .element_strides = {element_strides, rank},
                                   .interleave = interleave,
                                   .swizzle = swizzle,
                                   .promotion = promotion,
                                   .fill = fill};
    // *map is written only if the arguments are accepted.
    bool supported = true;
    if (!encode(request, reinterpret_cast<TensorMap*>(map), &supported)) return kCudaInvalidValue;
    return supported ? kCudaSuccess : kCudaNotSupported;
  });
}

}  // namespace annulus::simulator::driver::entry
