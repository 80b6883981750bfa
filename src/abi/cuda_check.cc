// Compares this library's declarations of the driver with NVIDIA's. Compiled only if cuda.h is
// found.

#include <cuda.h>

#include "abi/cuda_table.h"
#include "abi/signature.h"

namespace annulus::abi {
namespace {

#define SAME(symbol, parameters)                                           \
  static_assert(same_signature_v<CUresult parameters, decltype(::symbol)>, \
                "abi/cuda.def disagrees with cuda.h about " #symbol);
#define REQUIRED(member, symbol, parameters) SAME(symbol, parameters)
#if CUDA_VERSION >= 12050
#define OPTIONAL(member, symbol, parameters) SAME(symbol, parameters)
#else
#define OPTIONAL(member, symbol, parameters)  // an older header may not have it
#endif
// The simulator's own functions are compared with annulus/simulator.h.
#define SIMULATOR(member, symbol, parameters) SAME(symbol, parameters)
#include "abi/cuda.def"

static_assert(sizeof(CUdeviceptr) == sizeof(::CUdeviceptr));
#if CUDA_VERSION >= 12000
static_assert(sizeof(CUtensorMap) == sizeof(::CUtensorMap));
static_assert(alignof(CUtensorMap) >= alignof(::CUtensorMap));  // 64 before CUDA 13
static_assert(same_number_v<kCudaInvalidClusterSize, CUDA_ERROR_INVALID_CLUSTER_SIZE>);
#endif

static_assert(same_number_v<kCudaSuccess, CUDA_SUCCESS>);
static_assert(same_number_v<kCudaInvalidValue, CUDA_ERROR_INVALID_VALUE>);
static_assert(same_number_v<kCudaOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY>);
static_assert(same_number_v<kCudaNotInitialized, CUDA_ERROR_NOT_INITIALIZED>);
static_assert(same_number_v<kCudaDeinitialized, CUDA_ERROR_DEINITIALIZED>);
static_assert(same_number_v<kCudaStubLibrary, CUDA_ERROR_STUB_LIBRARY>);
static_assert(same_number_v<kCudaDeviceUnavailable, CUDA_ERROR_DEVICE_UNAVAILABLE>);
static_assert(same_number_v<kCudaNoDevice, CUDA_ERROR_NO_DEVICE>);
static_assert(same_number_v<kCudaInvalidDevice, CUDA_ERROR_INVALID_DEVICE>);
static_assert(same_number_v<kCudaInvalidImage, CUDA_ERROR_INVALID_IMAGE>);
static_assert(same_number_v<kCudaInvalidContext, CUDA_ERROR_INVALID_CONTEXT>);
static_assert(same_number_v<kCudaNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU>);
static_assert(same_number_v<kCudaPeerAccessUnsupported, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED>);
static_assert(same_number_v<kCudaInvalidPtx, CUDA_ERROR_INVALID_PTX>);
static_assert(same_number_v<kCudaFileNotFound, CUDA_ERROR_FILE_NOT_FOUND>);
static_assert(same_number_v<kCudaInvalidHandle, CUDA_ERROR_INVALID_HANDLE>);
static_assert(same_number_v<kCudaIllegalState, CUDA_ERROR_ILLEGAL_STATE>);
static_assert(same_number_v<kCudaNotFound, CUDA_ERROR_NOT_FOUND>);
static_assert(same_number_v<kCudaNotReady, CUDA_ERROR_NOT_READY>);
static_assert(same_number_v<kCudaIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS>);
static_assert(same_number_v<kCudaLaunchOutOfResources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES>);
static_assert(same_number_v<kCudaLaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT>);
static_assert(same_number_v<kCudaPeerAccessAlreadyEnabled, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED>);
static_assert(same_number_v<kCudaPeerAccessNotEnabled, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED>);
static_assert(same_number_v<kCudaContextDestroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED>);
static_assert(same_number_v<kCudaAssert, CUDA_ERROR_ASSERT>);
static_assert(same_number_v<kCudaHardwareStackError, CUDA_ERROR_HARDWARE_STACK_ERROR>);
static_assert(same_number_v<kCudaIllegalInstruction, CUDA_ERROR_ILLEGAL_INSTRUCTION>);
static_assert(same_number_v<kCudaMisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS>);
static_assert(same_number_v<kCudaInvalidAddressSpace, CUDA_ERROR_INVALID_ADDRESS_SPACE>);
static_assert(same_number_v<kCudaInvalidPc, CUDA_ERROR_INVALID_PC>);
static_assert(same_number_v<kCudaLaunchFailed, CUDA_ERROR_LAUNCH_FAILED>);
static_assert(
    same_number_v<kCudaCooperativeLaunchTooLarge, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE>);
static_assert(same_number_v<kCudaNotSupported, CUDA_ERROR_NOT_SUPPORTED>);
static_assert(same_number_v<kCudaSystemNotReady, CUDA_ERROR_SYSTEM_NOT_READY>);
static_assert(same_number_v<kCudaSystemDriverMismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH>);
static_assert(same_number_v<kCudaCompatNotSupported, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE>);
static_assert(same_number_v<kCudaCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED>);
static_assert(same_number_v<kCudaCaptureInvalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED>);
static_assert(same_number_v<kCudaCaptureMerge, CUDA_ERROR_STREAM_CAPTURE_MERGE>);
static_assert(same_number_v<kCudaCaptureIsolation, CUDA_ERROR_STREAM_CAPTURE_ISOLATION>);
static_assert(same_number_v<kCudaCaptureUnmatched, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED>);
static_assert(same_number_v<kCudaCaptureUnjoined, CUDA_ERROR_STREAM_CAPTURE_UNJOINED>);
static_assert(same_number_v<kCudaCapturedEvent, CUDA_ERROR_CAPTURED_EVENT>);
static_assert(same_number_v<kCudaUnknown, CUDA_ERROR_UNKNOWN>);

#define SAME_ATTRIBUTE(ours, theirs) \
  static_assert(same_number_v<ours, CU_DEVICE_ATTRIBUTE_##theirs>)
SAME_ATTRIBUTE(kAttributeMaxThreadsPerBlock, MAX_THREADS_PER_BLOCK);
SAME_ATTRIBUTE(kAttributeMaxBlockX, MAX_BLOCK_DIM_X);
SAME_ATTRIBUTE(kAttributeMaxBlockY, MAX_BLOCK_DIM_Y);
SAME_ATTRIBUTE(kAttributeMaxBlockZ, MAX_BLOCK_DIM_Z);
SAME_ATTRIBUTE(kAttributeMaxGridX, MAX_GRID_DIM_X);
SAME_ATTRIBUTE(kAttributeMaxGridY, MAX_GRID_DIM_Y);
SAME_ATTRIBUTE(kAttributeMaxGridZ, MAX_GRID_DIM_Z);
SAME_ATTRIBUTE(kAttributeMaxSharedPerBlock, MAX_SHARED_MEMORY_PER_BLOCK);
SAME_ATTRIBUTE(kAttributeConstantBytes, TOTAL_CONSTANT_MEMORY);
SAME_ATTRIBUTE(kAttributeWarpSize, WARP_SIZE);
SAME_ATTRIBUTE(kAttributeMaxRegistersPerBlock, MAX_REGISTERS_PER_BLOCK);
SAME_ATTRIBUTE(kAttributeClockKilohertz, CLOCK_RATE);
SAME_ATTRIBUTE(kAttributeMultiprocessors, MULTIPROCESSOR_COUNT);
SAME_ATTRIBUTE(kAttributeIntegrated, INTEGRATED);
SAME_ATTRIBUTE(kAttributeConcurrentKernels, CONCURRENT_KERNELS);
SAME_ATTRIBUTE(kAttributeEccEnabled, ECC_ENABLED);
SAME_ATTRIBUTE(kAttributePciBus, PCI_BUS_ID);
SAME_ATTRIBUTE(kAttributePciDevice, PCI_DEVICE_ID);
SAME_ATTRIBUTE(kAttributeMemoryClockKilohertz, MEMORY_CLOCK_RATE);
SAME_ATTRIBUTE(kAttributeMemoryBusBits, GLOBAL_MEMORY_BUS_WIDTH);
SAME_ATTRIBUTE(kAttributeL2Bytes, L2_CACHE_SIZE);
SAME_ATTRIBUTE(kAttributeMaxThreadsPerMultiprocessor, MAX_THREADS_PER_MULTIPROCESSOR);
SAME_ATTRIBUTE(kAttributeAsyncEngines, ASYNC_ENGINE_COUNT);
SAME_ATTRIBUTE(kAttributeUnifiedAddressing, UNIFIED_ADDRESSING);
SAME_ATTRIBUTE(kAttributePciDomain, PCI_DOMAIN_ID);
SAME_ATTRIBUTE(kAttributeComputeMajor, COMPUTE_CAPABILITY_MAJOR);
SAME_ATTRIBUTE(kAttributeComputeMinor, COMPUTE_CAPABILITY_MINOR);
SAME_ATTRIBUTE(kAttributeMaxSharedPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
SAME_ATTRIBUTE(kAttributeMaxRegistersPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR);
SAME_ATTRIBUTE(kAttributeCooperativeLaunch, COOPERATIVE_LAUNCH);
SAME_ATTRIBUTE(kAttributeMaxSharedPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME_ATTRIBUTE(kAttributeMaxBlocksPerMultiprocessor, MAX_BLOCKS_PER_MULTIPROCESSOR);
SAME_ATTRIBUTE(kAttributeReservedSharedPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK);
SAME_ATTRIBUTE(kAttributeMemoryPools, MEMORY_POOLS_SUPPORTED);
#if CUDA_VERSION >= 12000
SAME_ATTRIBUTE(kAttributeClusterLaunch, CLUSTER_LAUNCH);
SAME_ATTRIBUTE(kAttributeTensorMaps, TENSOR_MAP_ACCESS_SUPPORTED);
#endif

#define SAME_FUNCTION(ours, theirs) static_assert(same_number_v<ours, CU_FUNC_ATTRIBUTE_##theirs>)
SAME_FUNCTION(kFunctionMaxThreadsPerBlock, MAX_THREADS_PER_BLOCK);
SAME_FUNCTION(kFunctionSharedBytes, SHARED_SIZE_BYTES);
SAME_FUNCTION(kFunctionConstBytes, CONST_SIZE_BYTES);
SAME_FUNCTION(kFunctionLocalBytes, LOCAL_SIZE_BYTES);
SAME_FUNCTION(kFunctionRegisters, NUM_REGS);
SAME_FUNCTION(kFunctionPtxVersion, PTX_VERSION);
SAME_FUNCTION(kFunctionBinaryVersion, BINARY_VERSION);
SAME_FUNCTION(kFunctionMaxDynamicSharedBytes, MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME_FUNCTION(kFunctionSharedCarveout, PREFERRED_SHARED_MEMORY_CARVEOUT);

static_assert(same_number_v<kStreamNonBlocking, CU_STREAM_NON_BLOCKING>);
static_assert(same_number_v<kEventDefault, CU_EVENT_DEFAULT>);
static_assert(same_number_v<kEventDisableTiming, CU_EVENT_DISABLE_TIMING>);
static_assert(same_number_v<kCaptureGlobal, CU_STREAM_CAPTURE_MODE_GLOBAL>);
static_assert(same_number_v<kCaptureThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL>);
static_assert(same_number_v<kCaptureRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED>);

}  // namespace
}  // namespace annulus::abi

#undef SAME
