#ifndef ANNULUS_SIMULATOR_DRIVER_ENTRIES_FOREIGN_TYPES_H_
#define ANNULUS_SIMULATOR_DRIVER_ENTRIES_FOREIGN_TYPES_H_

// The types and numbers of cuda.h that only other programs use (provided.def). The types that
// Annulus uses are in abi/cuda_types.h. If cuda.h is found, exports_check.cc compares them with it.

#include <cstddef>
#include <cstdint>

#include "abi/cuda_types.h"

namespace annulus::simulator::driver {

using CUlibrary = struct CUlib_st*;
using CUkernel = struct CUkern_st*;
using CUgreenCtx = struct CUgreenCtx_st*;
using CUlinkState = struct CUlinkState_st*;

// CUjit_option. The values of options are passed as pointers.
enum : int {
  kJitInfoLog = 3,
  kJitInfoLogBytes = 4,
  kJitErrorLog = 5,
  kJitErrorLogBytes = 6,
};

// CUfunction_attribute
enum : int {
  kFunctionCacheModeCa = 7,
  kFunctionClusterMustBeSet = 10,
  kFunctionClusterWidth = 11,
  kFunctionClusterHeight = 12,
  kFunctionClusterDepth = 13,
  kFunctionClusterPolicy = 15,
};

// CUjitInputType
enum : int { kLinkCubin = 0, kLinkPtx = 1, kLinkFatBinary = 2, kLinkObject = 3, kLinkLibrary = 4 };

enum : int { kFunctionLoaded = 1 };  // CUfunctionLoadingState

// CUresult
enum : abi::CUresult {
  kCudaUnsupportedPtxVersion = 222,
  kCudaHostMemoryAlreadyRegistered = 712,
  kCudaHostMemoryNotRegistered = 713,
};

// CUdevice_attribute
enum : int {
  kAttributeTextureAlignment = 14,
  kAttributeCanMapHostMemory = 19,
  kAttributeManagedMemory = 83,
  kAttributeConcurrentManagedAccess = 89,
  kAttributeHostRegisterSameAddress = 91,
  kAttributeHostRegister = 99,
};

// Flags of cuMemHostAlloc and of cuMemHostRegister.
enum : unsigned { kHostAllocFlags = 7, kHostRegisterFlags = 15 };
enum : unsigned { kAttachGlobal = 1, kAttachHost = 2, kAttachSingle = 4 };  // CUmemAttach_flags

constexpr int kLimitHeapBytes = 2;  // CU_LIMIT_MALLOC_HEAP_SIZE

struct ContextParameters {  // CUctxCreateParams
  void* affinities;
  int affinity_count;
  void* graphics;
};

// CUmemorytype
enum : int {
  kMemoryHost = 1,
  kMemoryDevice = 2,
  kMemoryArray = 3,
  kMemoryUnified = 4,  // the address determines the type
};

// CUpointer_attribute
enum : int {
  kPointerContext = 1,
  kPointerMemoryType = 2,
  kPointerDevicePointer = 3,
  kPointerHostPointer = 4,
  kPointerSyncMemops = 6,
  kPointerBufferId = 7,
  kPointerIsManaged = 8,
  kPointerDeviceOrdinal = 9,
  kPointerIsIpcCapable = 10,
  kPointerRangeStart = 11,
  kPointerRangeSize = 12,
  kPointerMapped = 13,
  kPointerAllowedHandleTypes = 14,
  kPointerIsGpuDirectCapable = 15,
  kPointerAccessFlags = 16,
  kPointerMemoryPool = 17,
  kPointerMappingSize = 18,
  kPointerMappingStart = 19,
  kPointerBlockId = 20,
  kPointerIsDecompressCapable = 21,
};

// CUmemLocation, and CUmemLocationType with the number that older functions use for the host.
struct MemoryLocation {
  int type;
  int id;
};
enum : int { kLocationInvalid = 0, kLocationDevice = 1, kLocationHost = 2 };
enum : int { kCpuDevice = -1, kInvalidDevice = -2 };
enum : int { kAllocationPinned = 1, kAllocationManaged = 2 };           // CUmemAllocationType
enum : int { kAccessNone = 0, kAccessRead = 1, kAccessReadWrite = 3 };  // CUmemAccess_flags

// CUmem_advise and CUmem_range_attribute
enum : int {
  kAdviseSetReadMostly = 1,
  kAdviseUnsetReadMostly = 2,
  kAdviseSetPreferred = 3,
  kAdviseUnsetPreferred = 4,
  kAdviseSetAccessedBy = 5,
  kAdviseUnsetAccessedBy = 6,
};
enum : int {
  kRangeReadMostly = 1,
  kRangePreferred = 2,
  kRangeAccessedBy = 3,
  kRangeLastPrefetch = 4,
  kRangePreferredType = 5,
  kRangePreferredId = 6,
  kRangeLastPrefetchType = 7,
  kRangeLastPrefetchId = 8,
};

// CUmemPoolProps, CUmemAccessDesc and CUmemPool_attribute
using CUmemoryPool = struct CUmemPoolHandle_st*;
struct PoolProperties {
  int allocation_type;
  int handle_types;
  MemoryLocation location;
  void* security;
  std::size_t max_bytes;
  unsigned short usage;
  unsigned char reserved[54];
};
struct AccessDescription {
  MemoryLocation location;
  int flags;
};
enum : int {
  kPoolReuseFollowEvents = 1,
  kPoolReuseOpportunistic = 2,
  kPoolReuseInternal = 3,
  kPoolReleaseThreshold = 4,
  kPoolReservedNow = 5,
  kPoolReservedHigh = 6,
  kPoolUsedNow = 7,
  kPoolUsedHigh = 8,
};

// CUDA_MEMCPY2D, CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER
struct Copy2d {
  std::size_t from_x, from_y;
  int from_type;
  const void* from_host;
  abi::CUdeviceptr from_device;
  void* from_array;
  std::size_t from_pitch;
  std::size_t to_x, to_y;
  int to_type;
  void* to_host;
  abi::CUdeviceptr to_device;
  void* to_array;
  std::size_t to_pitch;
  std::size_t width, height;
};
struct Copy3d {
  std::size_t from_x, from_y, from_z, from_level;
  int from_type;
  const void* from_host;
  abi::CUdeviceptr from_device;
  void* from_array;
  void* from_context;  // a member of CUDA_MEMCPY3D_PEER; otherwise reserved
  std::size_t from_pitch, from_height;
  std::size_t to_x, to_y, to_z, to_level;
  int to_type;
  void* to_host;
  abi::CUdeviceptr to_device;
  void* to_array;
  void* to_context;
  std::size_t to_pitch, to_height;
  std::size_t width, height, depth;
};

// Graphs. The types of nodes (CUgraphNodeType):
using CUgraphNode = struct CUgraphNode_st*;
enum : int {
  kNodeKernel = 0,
  kNodeMemcpy = 1,
  kNodeMemset = 2,
  kNodeHost = 3,
  kNodeGraph = 4,
  kNodeEmpty = 5,
  kNodeWaitEvent = 6,
  kNodeRecordEvent = 7,
};
// CUgraphInstantiate_flags. Only a graph that kernels launch is refused.
enum : unsigned long long { kInstantiateFlags = 11 };
// CUgraphExecUpdateResult
enum : int {
  kUpdateSuccess = 0,
  kUpdateError = 1,
  kUpdateTopologyChanged = 2,
  kUpdateNodeTypeChanged = 3,
};
enum : abi::CUresult { kCudaGraphExecUpdateFailure = 910 };
enum : unsigned { kAddCaptureDependencies = 0, kSetCaptureDependencies = 1 };

// CUDA_KERNEL_NODE_PARAMS. The first version of the struct ends before `kernel`.
struct KernelNodeParameters {
  abi::CUfunction function;
  unsigned grid[3];
  unsigned block[3];
  unsigned dynamic_shared_bytes;
  void** parameters;
  void** extra;
  CUkernel kernel;
  abi::CUcontext context;
};
// CUDA_MEMSET_NODE_PARAMS. The second version of the struct has a context at its end.
struct MemsetNodeParameters {
  abi::CUdeviceptr to;
  std::size_t pitch;
  unsigned value;
  unsigned element_bytes;
  std::size_t width;
  std::size_t height;
};
struct HostNodeParameters {
  void (*function)(void*);
  void* data;
};
struct MemsetNodeParameters2 {
  MemsetNodeParameters fill;
  abi::CUcontext context;
};
// CUgraphNodeParams
struct AnyNodeParameters {
  int type;
  int reserved[3];
  union {
    long long room[29];
    KernelNodeParameters kernel;
    struct {
      int flags;
      int reserved;
      abi::CUcontext context;
      Copy3d copy;
    } memcpy;
    MemsetNodeParameters2 memset;
    HostNodeParameters host;
    struct {
      abi::CUgraph graph;
      int ownership;
    } child;
    abi::CUevent event;
  };
  long long reserved2;
};
// CUgraphEdgeData. The only supported edges wait for all of a node; their bytes are zeros.
struct EdgeData {
  unsigned char bytes[8];
};
struct ExecUpdateResult {
  int result;
  CUgraphNode node;
  CUgraphNode from;
};
// CUDA_GRAPH_INSTANTIATE_PARAMS
struct InstantiateParameters {
  std::uint64_t flags;
  abi::CUstream upload_stream;
  CUgraphNode wrong_node;
  int result;
};

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_ENTRIES_FOREIGN_TYPES_H_
