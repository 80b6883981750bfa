#include "device/pointer.h"

namespace annulus::device {
namespace {

constexpr int kPointerMemoryType = 2;      // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
constexpr int kPageableMemoryAccess = 88;  // CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS

}  // namespace

bool is_reachable(const Context& context, const void* address) {
  const ContextScope scope(context);
  unsigned type = 0;
  if (context.table().pointer_get_attribute(&type, kPointerMemoryType,
                                            reinterpret_cast<abi::CUdeviceptr>(address)) ==
      abi::kCudaSuccess) {
    return true;
  }
  int pageable = 0;
  return context.table().device_get_attribute(&pageable, kPageableMemoryAccess, context.device()) ==
             abi::kCudaSuccess &&
         pageable == 1;
}

}  // namespace annulus::device
