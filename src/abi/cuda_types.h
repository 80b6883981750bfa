#ifndef ANNULUS_ABI_CUDA_TYPES_H_
#define ANNULUS_ABI_CUDA_TYPES_H_

// The types and numbers of the CUDA Driver API that the table uses. They are declared here so that
// the library can be built on a machine without the toolkit. If cuda.h is found, cuda_check.cc
// compares all of them with it at compile time.

#include <cstddef>
#include <cstdint>

#include "annulus/simulator.h"

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

// The tensor map that cuTensorMapEncodeTiled fills in and kernels take as a parameter.
struct alignas(128) CUtensorMap {
  std::uint64_t opaque[16];
};

enum : CUresult {
  kCudaSuccess = 0,
  kCudaInvalidValue = 1,
  kCudaOutOfMemory = 2,
  kCudaNotInitialized = 3,
  kCudaDeinitialized = 4,
  kCudaStubLibrary = 34,
  kCudaDeviceUnavailable = 46,
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
  kCudaCooperativeLaunchTooLarge = 720,
  kCudaNotSupported = 801,
  kCudaSystemNotReady = 802,
  kCudaSystemDriverMismatch = 803,
  kCudaCompatNotSupported = 804,
  kCudaCaptureUnsupported = 900,  // a call that is not allowed while a stream is captured
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
  kAttributeCooperativeLaunch = 95,
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
  kFunctionNonPortableCluster = 14,
};

enum : unsigned {
  kStreamNonBlocking = 1,
  kEventDefault = 0,
  kEventDisableTiming = 2,
};

// CUstreamCaptureMode
enum : int { kCaptureGlobal = 0, kCaptureThreadLocal = 1, kCaptureRelaxed = 2 };

// The structs of annulus/simulator.h with their defaults. Only a simulated driver accepts them.
struct SimulatorOptions : annulus_simulator_options {
  SimulatorOptions() : annulus_simulator_options ANNULUS_SIMULATOR_OPTIONS_INIT {}
};

struct SimulatorCounters : annulus_simulator_counters {
  SimulatorCounters() : annulus_simulator_counters{} { struct_size = sizeof(*this); }
};

}  // namespace annulus::abi

#endif  // ANNULUS_ABI_CUDA_TYPES_H_
