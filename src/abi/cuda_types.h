#ifndef ANNULUS_ABI_CUDA_TYPES_H_
#define ANNULUS_ABI_CUDA_TYPES_H_

// The few types and numbers of the CUDA Driver API that the tables speak of, declared here so that
// the library builds on a machine without the toolkit. Where cuda.h is found, cuda_check.cc
// compares every one of them with it at compile time.

#include <cstddef>
#include <cstdint>

namespace annulus::abi {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphExec = struct CUgraphExec_st*;

// What cuTensorMapEncodeTiled fills in, for kernels to take as a parameter.
struct alignas(128) CUtensorMap {
  std::uint64_t opaque[16];
};

enum : CUresult {
  kCudaSuccess = 0,
  kCudaInvalidValue = 1,
  kCudaOutOfMemory = 2,
  kCudaNotInitialized = 3,
  kCudaDeinitialized = 4,
  kCudaNoDevice = 100,
  kCudaInvalidDevice = 101,
  kCudaInvalidImage = 200,
  kCudaInvalidContext = 201,
  kCudaNoBinaryForGpu = 209,
  kCudaPeerAccessUnsupported = 217,
  kCudaInvalidPtx = 218,
  kCudaFileNotFound = 301,
  kCudaInvalidHandle = 400,
  kCudaIllegalState = 401,
  kCudaNotFound = 500,
  kCudaNotReady = 600,
  kCudaIllegalAddress = 700,
  kCudaLaunchOutOfResources = 701,
  kCudaLaunchTimeout = 702,
  kCudaPeerAccessAlreadyEnabled = 704,
  kCudaPeerAccessNotEnabled = 705,
  kCudaContextDestroyed = 709,
  kCudaAssert = 710,
  kCudaHardwareStackError = 714,
  kCudaIllegalInstruction = 715,
  kCudaMisalignedAddress = 716,
  kCudaInvalidAddressSpace = 717,
  kCudaInvalidPc = 718,
  kCudaLaunchFailed = 719,
  kCudaNotSupported = 801,
  kCudaCaptureUnsupported = 900,  // a call that a stream under capture forbids
  kCudaCaptureInvalidated = 901,
  kCudaCaptureMerge = 902,
  kCudaCaptureUnmatched = 903,
  kCudaCaptureUnjoined = 904,
  kCudaCaptureIsolation = 905,
  kCudaCapturedEvent = 907,
  kCudaInvalidClusterSize = 912,
  kCudaUnknown = 999,
};

// CUdevice_attribute
enum : int {
  kAttributeMaxThreadsPerBlock = 1,
  kAttributeMaxBlockX = 2,
  kAttributeMaxBlockY = 3,
  kAttributeMaxBlockZ = 4,
  kAttributeMaxGridX = 5,
  kAttributeMaxGridY = 6,
  kAttributeMaxGridZ = 7,
  kAttributeMaxSharedPerBlock = 8,
  kAttributeConstantBytes = 9,
  kAttributeWarpSize = 10,
  kAttributeMaxRegistersPerBlock = 12,
  kAttributeClockKilohertz = 13,
  kAttributeMultiprocessors = 16,
  kAttributeIntegrated = 18,
  kAttributeConcurrentKernels = 31,
  kAttributeEccEnabled = 32,
  kAttributePciBus = 33,
  kAttributePciDevice = 34,
  kAttributeMemoryClockKilohertz = 36,
  kAttributeMemoryBusBits = 37,
  kAttributeL2Bytes = 38,
  kAttributeMaxThreadsPerMultiprocessor = 39,
  kAttributeAsyncEngines = 40,
  kAttributeUnifiedAddressing = 41,
  kAttributePciDomain = 50,
  kAttributeComputeMajor = 75,
  kAttributeComputeMinor = 76,
  kAttributeMaxSharedPerMultiprocessor = 81,
  kAttributeMaxRegistersPerMultiprocessor = 82,
  kAttributeMaxSharedPerBlockOptin = 97,
  kAttributeMaxBlocksPerMultiprocessor = 106,
  kAttributeReservedSharedPerBlock = 111,
  kAttributeMemoryPools = 115,
  kAttributeClusterLaunch = 120,
  kAttributeTensorMaps = 127,
};

// CUfunction_attribute
enum : int {
  kFunctionMaxThreadsPerBlock = 0,
  kFunctionSharedBytes = 1,
  kFunctionConstBytes = 2,
  kFunctionLocalBytes = 3,
  kFunctionRegisters = 4,
  kFunctionPtxVersion = 5,
  kFunctionBinaryVersion = 6,
  kFunctionMaxDynamicSharedBytes = 8,
  kFunctionSharedCarveout = 9,
};

enum : unsigned {
  kStreamNonBlocking = 1,
  kEventDefault = 0,
  kEventDisableTiming = 2,
};

// CUstreamCaptureMode
enum : int { kCaptureGlobal = 0, kCaptureThreadLocal = 1, kCaptureRelaxed = 2 };

// What only a simulated driver can do. Plain C structs: they cross the boundary of libcuda.so.1.
// `bytes` is sizeof the struct the caller was compiled with; fields beyond it are not touched.
struct SimulatorOptions {
  std::uint32_t bytes = sizeof(SimulatorOptions);
  std::uint32_t checked = 1;  // 1: the checked twin, 0: the fast one
  std::uint64_t seed = 0;     // of warp order and of when asynchronous effects land
  std::uint32_t threads = 0;  // host threads for CTAs; 0: one per processor
  std::uint32_t quantum = 0;  // instructions a warp runs before another may; 0: drawn
  std::uint32_t landing = 0;  // asynchronous effects: 0 random, 1 early, 2 late
  std::uint32_t limit = 0;    // millions of warp instructions that a CTA may run; 0: any
  std::uint32_t streams = 0;  // 0: work runs when it is queued, 1: later, in a drawn order
  // A wait for matrix products (wgmma) covers 1: the warpgroup, 2: the warp; 0: drawn per CTA.
  std::uint32_t products = 0;
};

// Totals of all launches on a device since the counters were last cleared.
struct SimulatorCounters {
  std::uint32_t bytes = sizeof(SimulatorCounters);
  std::uint32_t reserved = 0;
  std::uint64_t launches = 0;
  std::uint64_t ctas = 0;
  std::uint64_t warp_instructions = 0;    // instructions issued, one per warp
  std::uint64_t thread_instructions = 0;  // the same, one per active lane
  std::uint64_t integer = 0;              // warp instructions by class ...
  std::uint64_t float32 = 0;
  std::uint64_t conversion = 0;
  std::uint64_t special = 0;  // ex2, lg2, rcp, rsqrt, sin, cos, sqrt, tanh
  std::uint64_t control = 0;
  std::uint64_t barrier = 0;
  std::uint64_t shuffle = 0;
  std::uint64_t global_load = 0;
  std::uint64_t global_store = 0;
  std::uint64_t shared_load = 0;   // ld.shared, ldmatrix
  std::uint64_t shared_store = 0;  // st.shared, stmatrix
  std::uint64_t async_copy = 0;
  std::uint64_t atomic = 0;
  std::uint64_t matrix = 0;  // mma.sync, wgmma
  std::uint64_t other = 0;
  std::uint64_t matrix_flop = 0;              // 2 M N K of each matrix instruction
  std::uint64_t special_lanes = 0;            // special-function results, one per active lane
  std::uint64_t shared_wavefronts = 0;        // shared-memory cycles needed, with bank conflicts
  std::uint64_t shared_wavefronts_ideal = 0;  // the same if no two lanes collided
  std::uint64_t global_sectors_read = 0;      // 32-byte sectors
  std::uint64_t global_sectors_written = 0;
  std::uint64_t faults = 0;
  std::uint64_t bulk_bytes = 0;           // moved by bulk copies, in each CTA's shared memory
  std::uint64_t matrix_shared_bytes = 0;  // read from shared memory by wgmma
};

}  // namespace annulus::abi

#endif  // ANNULUS_ABI_CUDA_TYPES_H_
