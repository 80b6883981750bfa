// Compares what libcudart.so.13 exports, and the structs of its parameters, with NVIDIA's
// declarations. The file is compiled only if the toolkit is found, and compares nothing with a
// toolkit of another version.

#include <cuda.h>
#include <cudaProfiler.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

#include "abi/signature.h"
#include "simulator/runtime/entries.h"

#if CUDART_VERSION >= 13000 && CUDART_VERSION < 14000
// Deprecated functions are compared too, because programs still call them.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

// CUDA declares these functions only for nvcc's host code (crt/host_runtime.h).
extern "C" {
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, size_t*, void*);
cudaError_t __cudaGetKernel(cudaKernel_t*, const void*);
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t);
}

namespace annulus::simulator::runtime {

#define SAME(symbol, parameters)                                             \
  static_assert(abi::same_signature_v<Error parameters, decltype(::symbol)>, \
                "simulator/runtime/functions.def disagrees with CUDA about " #symbol);
#define ENTRY(name, symbol, parameters) SAME(symbol, parameters)
#define FORWARD(name, symbol, driver_symbol, parameters) \
  SAME(symbol, parameters)                               \
  SAME(driver_symbol, parameters)
#include "simulator/runtime/functions.def"

#define DRIVER(member, symbol, parameters) SAME(symbol, parameters)
#include "simulator/runtime/driver.def"

#define ERROR(number, name, text) \
  static_assert(static_cast<int>(::name) == number, "the number of " #name);
#include "simulator/runtime/errors.def"

#define SAME_SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs))
#define SAME_PLACE(ours, member, theirs, their_member)                      \
  static_assert(offsetof(ours, member) == offsetof(theirs, their_member) && \
                sizeof(ours::member) == sizeof(theirs::their_member))

SAME_SIZE(DeviceProperties, cudaDeviceProp);
SAME_PLACE(DeviceProperties, surfaceAlignment, cudaDeviceProp, surfaceAlignment);
SAME_PLACE(DeviceProperties, totalGlobalMem, cudaDeviceProp, totalGlobalMem);
SAME_PLACE(DeviceProperties, reserved, cudaDeviceProp, reserved);
#define PROPERTY(member, attribute)                                                       \
  static_assert(offsetof(DeviceProperties, member) == offsetof(cudaDeviceProp, member) && \
                sizeof(DeviceProperties::member) == sizeof(cudaDeviceProp::member));
#include "simulator/runtime/properties.def"

SAME_SIZE(FunctionAttributes, cudaFuncAttributes);
SAME_PLACE(FunctionAttributes, nonPortableClusterSizeAllowed, cudaFuncAttributes,
           nonPortableClusterSizeAllowed);
SAME_SIZE(PointerAttributes, cudaPointerAttributes);
SAME_PLACE(PointerAttributes, hostPointer, cudaPointerAttributes, hostPointer);
SAME_SIZE(PitchedPointer, cudaPitchedPtr);
SAME_SIZE(Extent, cudaExtent);
SAME_SIZE(Position, cudaPos);
SAME_SIZE(ChannelFormat, cudaChannelFormatDesc);
SAME_SIZE(Copy3D, cudaMemcpy3DParms);
SAME_PLACE(Copy3D, dstPtr, cudaMemcpy3DParms, dstPtr);
SAME_PLACE(Copy3D, kind, cudaMemcpy3DParms, kind);
SAME_SIZE(DriverCopy3D, CUDA_MEMCPY3D);
static_assert(offsetof(DriverCopy3D, from.height) == offsetof(CUDA_MEMCPY3D, srcHeight));
static_assert(offsetof(DriverCopy3D, to.device) == offsetof(CUDA_MEMCPY3D, dstDevice));
static_assert(offsetof(DriverCopy3D, depth) == offsetof(CUDA_MEMCPY3D, Depth));
SAME_SIZE(DriverCopy2D, CUDA_MEMCPY2D);
static_assert(offsetof(DriverCopy2D, from.pitch) == offsetof(CUDA_MEMCPY2D, srcPitch));
static_assert(offsetof(DriverCopy2D, to.device) == offsetof(CUDA_MEMCPY2D, dstDevice));
static_assert(offsetof(DriverCopy2D, height) == offsetof(CUDA_MEMCPY2D, Height));
SAME_SIZE(MemoryLocation, cudaMemLocation);
SAME_SIZE(MemoryLocation, CUmemLocation);
SAME_SIZE(LaunchAttribute, cudaLaunchAttribute);
SAME_SIZE(LaunchAttribute, CUlaunchAttribute);
SAME_SIZE(LaunchConfig, cudaLaunchConfig_t);
SAME_PLACE(LaunchConfig, stream, cudaLaunchConfig_t, stream);
SAME_PLACE(LaunchConfig, attribute_count, cudaLaunchConfig_t, numAttrs);
SAME_SIZE(DriverLaunchConfig, CUlaunchConfig);
SAME_PLACE(DriverLaunchConfig, stream, CUlaunchConfig, hStream);
SAME_PLACE(DriverLaunchConfig, attribute_count, CUlaunchConfig, numAttrs);
SAME_SIZE(KernelNode, cudaKernelNodeParams);
SAME_PLACE(KernelNode, parameters, cudaKernelNodeParams, kernelParams);
SAME_SIZE(DriverKernelNode, CUDA_KERNEL_NODE_PARAMS);
SAME_PLACE(DriverKernelNode, parameters, CUDA_KERNEL_NODE_PARAMS, kernelParams);
SAME_PLACE(DriverKernelNode, context, CUDA_KERNEL_NODE_PARAMS, ctx);
SAME_SIZE(MemsetNode, cudaMemsetParams);
SAME_PLACE(MemsetNode, height, cudaMemsetParams, height);

#define SAME_NUMBER(ours, theirs) static_assert(static_cast<int>(ours) == static_cast<int>(theirs))
SAME_NUMBER(kHostToHost, cudaMemcpyHostToHost);
SAME_NUMBER(kHostToDevice, cudaMemcpyHostToDevice);
SAME_NUMBER(kDeviceToHost, cudaMemcpyDeviceToHost);
SAME_NUMBER(kDeviceToDevice, cudaMemcpyDeviceToDevice);
SAME_NUMBER(kByAddress, cudaMemcpyDefault);
SAME_NUMBER(kUnregistered, cudaMemoryTypeUnregistered);
SAME_NUMBER(kHostMemory, cudaMemoryTypeHost);
SAME_NUMBER(kDeviceMemory, cudaMemoryTypeDevice);
SAME_NUMBER(kManagedMemory, cudaMemoryTypeManaged);
SAME_NUMBER(kDriverHost, CU_MEMORYTYPE_HOST);
SAME_NUMBER(kDriverDevice, CU_MEMORYTYPE_DEVICE);
SAME_NUMBER(kDriverUnified, CU_MEMORYTYPE_UNIFIED);

}  // namespace annulus::simulator::runtime
#endif
