#ifndef ANNULUS_SIMULATOR_RUNTIME_TYPES_H_
#define ANNULUS_SIMULATOR_RUNTIME_TYPES_H_

// The types and numbers of the CUDA runtime's interface, version 13. They are declared here, so
// that the library builds on a machine without the toolkit. If cuda_runtime_api.h is found,
// exports_check.cc compares all of them with it at compile time.

#include <cstddef>
#include <cstdint>

#include "abi/cuda_types.h"

namespace annulus::simulator::runtime {

using abi::CUcontext;
using abi::CUdevice;
using abi::CUdeviceptr;
using abi::CUevent;
using abi::CUfunction;
using abi::CUgraph;
using abi::CUgraphExec;
using abi::CUmodule;
using abi::CUresult;
using abi::CUstream;
using GraphNode = struct CUgraphNode_st*;
using MemoryPool = struct CUmemPoolHandle_st*;
using UserObject = struct CUuserObject_st*;

// cudaError. Codes with the same meaning have the same numbers in the driver. The runtime also has
// codes of its own.
using Error = int;
enum : Error {
#define ERROR(number, name, text) name = number,
#include "simulator/runtime/errors.def"
};

// The version of CUDA that has this interface.
constexpr int kVersion = 13000;

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

// cudaMemcpyKind
enum : int {
  kHostToHost = 0,
  kHostToDevice = 1,
  kDeviceToHost = 2,
  kDeviceToDevice = 3,
  kByAddress = 4,
};

// cudaMemoryType
enum : int { kUnregistered = 0, kHostMemory = 1, kDeviceMemory = 2, kManagedMemory = 3 };

constexpr int kInvalidDeviceId = -2;  // the device of memory that belongs to no device

struct Uuid {
  char bytes[16];
};

// cudaDeviceProp. Members without a line in properties.def are set in code or are zero.
struct DeviceProperties {
  char name[256];
  Uuid uuid;
  char luid[8];
  unsigned luidDeviceNodeMask;
  std::size_t totalGlobalMem;
  std::size_t sharedMemPerBlock;
  int regsPerBlock;
  int warpSize;
  std::size_t memPitch;
  int maxThreadsPerBlock;
  int maxThreadsDim[3];
  int maxGridSize[3];
  std::size_t totalConstMem;
  int major;
  int minor;
  std::size_t textureAlignment;
  std::size_t texturePitchAlignment;
  int multiProcessorCount;
  int integrated;
  int canMapHostMemory;
  int textures_and_surfaces[39];  // maxTexture1D to maxSurfaceCubemapLayered
  std::size_t surfaceAlignment;
  int concurrentKernels;
  int ECCEnabled;
  int pciBusID;
  int pciDeviceID;
  int pciDomainID;
  int tccDriver;
  int asyncEngineCount;
  int unifiedAddressing;
  int memoryBusWidth;
  int l2CacheSize;
  int persistingL2CacheMaxSize;
  int maxThreadsPerMultiProcessor;
  int streamPrioritiesSupported;
  int globalL1CacheSupported;
  int localL1CacheSupported;
  std::size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor;
  int managedMemory;
  int isMultiGpuBoard;
  int multiGpuBoardGroupID;
  int hostNativeAtomicSupported;
  int pageableMemoryAccess;
  int concurrentManagedAccess;
  int computePreemptionSupported;
  int canUseHostPointerForRegisteredMem;
  int cooperativeLaunch;
  std::size_t sharedMemPerBlockOptin;
  int pageableMemoryAccessUsesHostPageTables;
  int directManagedMemAccessFromHost;
  int maxBlocksPerMultiProcessor;
  int accessPolicyMaxWindowSize;
  std::size_t reservedSharedMemPerBlock;
  int hostRegisterSupported;
  int sparseCudaArraySupported;
  int hostRegisterReadOnlySupported;
  int timelineSemaphoreInteropSupported;
  int memoryPoolsSupported;
  int gpuDirectRDMASupported;
  unsigned gpuDirectRDMAFlushWritesOptions;
  int gpuDirectRDMAWritesOrdering;
  unsigned memoryPoolSupportedHandleTypes;
  int deferredMappingCudaArraySupported;
  int ipcEventSupported;
  int clusterLaunch;
  int unifiedFunctionPointers;
  int deviceNumaConfig;
  int deviceNumaId;
  int mpsEnabled;
  int hostNumaId;
  unsigned gpuPciDeviceID;
  unsigned gpuPciSubsystemID;
  int hostNumaMultinodeIpcSupported;
  int reserved[56];
};

struct FunctionAttributes {
  std::size_t sharedSizeBytes;
  std::size_t constSizeBytes;
  std::size_t localSizeBytes;
  int maxThreadsPerBlock;
  int numRegs;
  int ptxVersion;
  int binaryVersion;
  int cacheModeCA;
  int maxDynamicSharedSizeBytes;
  int preferredShmemCarveout;
  int clusterDimMustBeSet;
  int requiredClusterWidth;
  int requiredClusterHeight;
  int requiredClusterDepth;
  int clusterSchedulingPolicyPreference;
  int nonPortableClusterSizeAllowed;
  int reserved[16];
};

struct PointerAttributes {
  int type;
  int device;
  void* devicePointer;
  void* hostPointer;
  long reserved[8];
};

struct PitchedPointer {
  void* ptr;
  std::size_t pitch;
  std::size_t xsize;
  std::size_t ysize;
};

struct Extent {
  std::size_t width;
  std::size_t height;
  std::size_t depth;
};

struct Position {
  std::size_t x;
  std::size_t y;
  std::size_t z;
};

struct ChannelFormat {
  int x, y, z, w;
  int kind;
};

// cudaMemcpy3DParms
struct Copy3D {
  void* srcArray;
  Position srcPos;
  PitchedPointer srcPtr;
  void* dstArray;
  Position dstPos;
  PitchedPointer dstPtr;
  Extent extent;
  int kind;
};

// CUDA_MEMCPY3D, and CUDA_MEMCPY2D, whose members are all part of it.
struct DriverSide3D {
  std::size_t x, y, z, level;
  int type;
  void* host;
  CUdeviceptr device;
  void* array;
  void* reserved;
  std::size_t pitch;
  std::size_t height;
};
struct DriverCopy3D {
  DriverSide3D from, to;
  std::size_t width, height, depth;
};
struct DriverSide2D {
  std::size_t x, y;
  int type;
  void* host;
  CUdeviceptr device;
  void* array;
  std::size_t pitch;
};
struct DriverCopy2D {
  DriverSide2D from, to;
  std::size_t width, height;
};

// CUmemorytype
enum : int { kDriverHost = 1, kDriverDevice = 2, kDriverUnified = 4 };

// cudaMemLocation and CUmemLocation
struct MemoryLocation {
  int type;
  int id;
};

// cudaLaunchAttribute and CUlaunchAttribute
struct LaunchAttribute {
  int id;
  char pad[4];
  char value[64];
};

// cudaLaunchConfig_t
struct LaunchConfig {
  Dim3 grid;
  Dim3 block;
  std::size_t dynamic_shared_bytes;
  CUstream stream;
  const LaunchAttribute* attributes;
  unsigned attribute_count;
};

// CUlaunchConfig
struct DriverLaunchConfig {
  Dim3 grid;
  Dim3 block;
  unsigned dynamic_shared_bytes;
  CUstream stream;
  const LaunchAttribute* attributes;
  unsigned attribute_count;
};

// cudaKernelNodeParams
struct KernelNode {
  const void* function;
  Dim3 grid;
  Dim3 block;
  unsigned dynamic_shared_bytes;
  void** parameters;
  void** extra;
};

// CUDA_KERNEL_NODE_PARAMS
struct DriverKernelNode {
  CUfunction function;
  Dim3 grid;
  Dim3 block;
  unsigned dynamic_shared_bytes;
  void** parameters;
  void** extra;
  void* kernel;
  CUcontext context;
};

// cudaMemsetParams and CUDA_MEMSET_NODE_PARAMS
struct MemsetNode {
  void* to;
  std::size_t pitch;
  unsigned value;
  unsigned unit;
  std::size_t width;
  std::size_t height;
};

using HostFunction = void (*)(void* data);
using StreamCallback = void (*)(CUstream stream, Error status, void* data);

}  // namespace annulus::simulator::runtime

#endif  // ANNULUS_SIMULATOR_RUNTIME_TYPES_H_
