// Compares what libcuda.so.1 exports with NVIDIA's declarations. The file is compiled only if
// cuda.h is found.

#include <cuda.h>
#include <cudaProfiler.h>

#include "abi/signature.h"
#include "annulus/simulator.h"
#include "simulator/driver/entries/entries.h"

namespace annulus::simulator::driver {

// Deprecated functions are compared too, because programs still call them.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define ENTRY(name, symbol, parameters)                                         \
  static_assert(abi::same_signature_v<decltype(entry::name), decltype(symbol)>, \
                "simulator/driver/entries/provided.def disagrees with cuda.h about " #symbol);
#define OLDER(name, symbol, parameters)
#include "simulator/driver/entries/provided.def"

static_assert(sizeof(entry::LaunchConfig) == sizeof(CUlaunchConfig));
static_assert(offsetof(entry::LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(entry::LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));

#define SAME(ours, theirs) static_assert(abi::same_number_v<ours, theirs>)
SAME(kJitInfoLog, CU_JIT_INFO_LOG_BUFFER);
SAME(kJitInfoLogBytes, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES);
SAME(kJitErrorLog, CU_JIT_ERROR_LOG_BUFFER);
SAME(kJitErrorLogBytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SAME(kFunctionCacheModeCa, CU_FUNC_ATTRIBUTE_CACHE_MODE_CA);
SAME(kFunctionClusterMustBeSet, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET);
SAME(kFunctionClusterWidth, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH);
SAME(kFunctionClusterHeight, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT);
SAME(kFunctionClusterDepth, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH);
SAME(kFunctionClusterPolicy, CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
SAME(kCudaUnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
SAME(kCudaHostMemoryAlreadyRegistered, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
SAME(kCudaHostMemoryNotRegistered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
SAME(kAttributeTextureAlignment, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
SAME(kAttributeCanMapHostMemory, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY);
SAME(kAttributeManagedMemory, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
SAME(kAttributeConcurrentManagedAccess, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
SAME(kAttributeHostRegisterSameAddress,
     CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);
SAME(kAttributeHostRegister, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED);
SAME(kMemoryUnified, CU_MEMORYTYPE_UNIFIED);
SAME(kPointerHostPointer, CU_POINTER_ATTRIBUTE_HOST_POINTER);
SAME(kPointerIsManaged, CU_POINTER_ATTRIBUTE_IS_MANAGED);
SAME(kPointerMapped, CU_POINTER_ATTRIBUTE_MAPPED);
SAME(kPointerMemoryPool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE);
SAME(kPointerIsDecompressCapable, CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE);
SAME(kLocationHost, CU_MEM_LOCATION_TYPE_HOST);
SAME(kAllocationManaged, CU_MEM_ALLOCATION_TYPE_MANAGED);
SAME(kAccessReadWrite, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME(kAdviseUnsetAccessedBy, CU_MEM_ADVISE_UNSET_ACCESSED_BY);
SAME(kRangeLastPrefetchId, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID);
SAME(kPoolUsedHigh, CU_MEMPOOL_ATTR_USED_MEM_HIGH);
static_assert(sizeof(MemoryLocation) == sizeof(CUmemLocation));
static_assert(sizeof(AccessDescription) == sizeof(CUmemAccessDesc));
static_assert(sizeof(PoolProperties) == sizeof(CUmemPoolProps));
static_assert(offsetof(PoolProperties, max_bytes) == offsetof(CUmemPoolProps, maxSize));
static_assert(sizeof(Copy2d) == sizeof(CUDA_MEMCPY2D));
static_assert(offsetof(Copy2d, to_pitch) == offsetof(CUDA_MEMCPY2D, dstPitch));
static_assert(sizeof(Copy3d) == sizeof(CUDA_MEMCPY3D));
static_assert(offsetof(Copy3d, to_pitch) == offsetof(CUDA_MEMCPY3D, dstPitch));
static_assert(sizeof(Copy3d) == sizeof(CUDA_MEMCPY3D_PEER));
static_assert(offsetof(Copy3d, to_context) == offsetof(CUDA_MEMCPY3D_PEER, dstContext));
SAME(kNodeRecordEvent, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
SAME(kNodeEmpty, CU_GRAPH_NODE_TYPE_EMPTY);
SAME(kUpdateNodeTypeChanged, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
SAME(kUpdateTopologyChanged, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
SAME(kCudaGraphExecUpdateFailure, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
SAME(kSetCaptureDependencies, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
static_assert(sizeof(KernelNodeParameters) == sizeof(CUDA_KERNEL_NODE_PARAMS));
static_assert(offsetof(KernelNodeParameters, context) == offsetof(CUDA_KERNEL_NODE_PARAMS, ctx));
static_assert(sizeof(MemsetNodeParameters) == sizeof(CUDA_MEMSET_NODE_PARAMS));
static_assert(sizeof(MemsetNodeParameters2) == sizeof(CUDA_MEMSET_NODE_PARAMS_v2));
static_assert(sizeof(HostNodeParameters) == sizeof(CUDA_HOST_NODE_PARAMS));
static_assert(sizeof(AnyNodeParameters) == sizeof(CUgraphNodeParams));
static_assert(offsetof(AnyNodeParameters, memcpy.copy) ==
              offsetof(CUgraphNodeParams, memcpy.copyParams));
static_assert(sizeof(EdgeData) == sizeof(CUgraphEdgeData));
static_assert(sizeof(ExecUpdateResult) == sizeof(CUgraphExecUpdateResultInfo));
static_assert(sizeof(InstantiateParameters) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS));
SAME(kLinkPtx, CU_JIT_INPUT_PTX);
SAME(kLinkLibrary, CU_JIT_INPUT_LIBRARY);
SAME(kFunctionLoaded, CU_FUNCTION_LOADING_STATE_LOADED);

}  // namespace annulus::simulator::driver
