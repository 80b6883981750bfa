// Initialisation, errors, devices.

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "simulator/driver/entries/entries.h"
#include "simulator/driver/objects/console.h"
#include "simulator/driver/objects/start_options.h"
#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver::entry {
namespace {

struct ErrorText {
  CUresult code;
  const char* name;
  const char* text;
};

constexpr ErrorText kErrors[] = {
    {kCudaSuccess, "CUDA_SUCCESS", "no error"},
    {kCudaInvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {kCudaOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {kCudaNotInitialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {kCudaDeinitialized, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {kCudaNoDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {kCudaInvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {kCudaInvalidImage, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {kCudaInvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {kCudaNoBinaryForGpu, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {kCudaPeerAccessUnsupported, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
     "peer access is not supported between these two devices"},
    {kCudaInvalidPtx, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {kCudaUnsupportedPtxVersion, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain."},
    {kCudaFileNotFound, "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
    {kCudaInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {kCudaIllegalState, "CUDA_ERROR_ILLEGAL_STATE",
     "the operation cannot be performed in the present state"},
    {kCudaNotFound, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {kCudaNotReady, "CUDA_ERROR_NOT_READY", "device not ready"},
    {kCudaIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {kCudaLaunchOutOfResources, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "too many resources requested for launch"},
    {kCudaLaunchTimeout, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {kCudaPeerAccessAlreadyEnabled, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
     "peer access is already enabled"},
    {kCudaPeerAccessNotEnabled, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED",
     "peer access has not been enabled"},
    {kCudaContextDestroyed, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {kCudaAssert, "CUDA_ERROR_ASSERT", "device-side assert triggered"},
    {kCudaHostMemoryAlreadyRegistered, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {kCudaHostMemoryNotRegistered, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {kCudaHardwareStackError, "CUDA_ERROR_HARDWARE_STACK_ERROR", "hardware stack error"},
    {kCudaIllegalInstruction, "CUDA_ERROR_ILLEGAL_INSTRUCTION",
     "an illegal instruction was encountered"},
    {kCudaMisalignedAddress, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {kCudaInvalidAddressSpace, "CUDA_ERROR_INVALID_ADDRESS_SPACE",
     "operation not supported on global/shared address space"},
    {kCudaInvalidPc, "CUDA_ERROR_INVALID_PC", "invalid program counter"},
    {kCudaLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {kCudaCooperativeLaunchTooLarge, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
     "too many blocks in cooperative launch"},
    {kCudaNotSupported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {kCudaCaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {kCudaCaptureInvalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {kCudaCaptureMerge, "CUDA_ERROR_STREAM_CAPTURE_MERGE",
     "operation would cause a merge of two independent capture sequences"},
    {kCudaCaptureUnmatched, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "capture was not initiated in this stream"},
    {kCudaCaptureUnjoined, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
     "capturing stream has unjoined work"},
    {kCudaCaptureIsolation, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
     "dependency created on uncaptured work in another stream"},
    {kCudaCapturedEvent, "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
    {kCudaGraphExecUpdateFailure, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
     "the graph update was not performed because it included changes which violated constraints "
     "specific to instantiated graph update"},
    {kCudaInvalidClusterSize, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "invalid cluster size"},
    {kCudaUnknown, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

const ErrorText* error_text(CUresult code) {
  const auto* found = std::find_if(std::begin(kErrors), std::end(kErrors),
                                   [&](const ErrorText& error) { return error.code == code; });
  return found == std::end(kErrors) ? nullptr : found;
}

}  // namespace

namespace {

// Writes a line of a device's log to stderr, for a program that does not call
// annulusSimulatorSetLog.
void write_line(void* device, int level, const char* text) {
  if (level > static_cast<int>(foreign_log_level())) return;
  write_stderr(fmt::format("annulus simulator, device {}: {}\n",
                           static_cast<const Device*>(device)->ordinal(), text));
}

// Sets the options from the environment on all devices.
bool start_devices() {
  const std::optional<SimulatorOptions> options = read_start_options();
  if (!options) return false;
  for (const auto& device : state().devices) {
    device->set_options(*options);
    if (serves_foreign_programs()) device->log().add(&write_line, device.get());
  }
  return true;
}

}  // namespace

CUresult init(unsigned flags) {
  if (flags != 0) return kCudaInvalidValue;
  // The interpreter is compiled for x86-64-v3. On an older processor it would end with an illegal
  // instruction.
  const bool able = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi2");
  if (!able) return kCudaNotSupported;
  if (state().forked) return kCudaNotInitialized;
  static const bool started = start_devices();
  if (!started) return kCudaInvalidValue;
  state().initialised = true;
  return kCudaSuccess;
}

// The simulated driver has the behaviour and the symbols of CUDA 13.0. As in CUDA, this function
// may be called before cuInit.
CUresult driver_get_version(int* version) {
  if (version == nullptr) return kCudaInvalidValue;
  *version = 13000;
  return kCudaSuccess;
}

CUresult get_error_name(CUresult error, const char** name) {
  if (name == nullptr) return kCudaInvalidValue;
  const ErrorText* found = error_text(error);
  *name = found != nullptr ? found->name : nullptr;
  return found != nullptr ? kCudaSuccess : kCudaInvalidValue;
}

CUresult get_error_string(CUresult error, const char** text) {
  if (text == nullptr) return kCudaInvalidValue;
  const ErrorText* found = error_text(error);
  *text = found != nullptr ? found->text : nullptr;
  return found != nullptr ? kCudaSuccess : kCudaInvalidValue;
}

CUresult device_get_count(int* count) {
  return guarded([&]() -> CUresult {
    if (count == nullptr) return kCudaInvalidValue;
    *count = static_cast<int>(state().devices.size());
    return kCudaSuccess;
  });
}

CUresult device_get(CUdevice* device, int ordinal) {
  return guarded([&]() -> CUresult {
    if (device == nullptr) return kCudaInvalidValue;
    *device = device_at(ordinal).ordinal();
    return kCudaSuccess;
  });
}

CUresult device_get_name(char* name, int bytes, CUdevice device) {
  return guarded([&]() -> CUresult {
    const Device& at = device_at(device);
    if (name == nullptr || bytes <= 0) return kCudaInvalidValue;
    const std::string text =
        fmt::format("Annulus simulated {} #{}", at.model().architecture, at.index());
    const std::size_t length = std::min(text.size(), static_cast<std::size_t>(bytes) - 1);
    std::memcpy(name, text.data(), length);
    name[length] = '\0';
    return kCudaSuccess;
  });
}

CUresult device_get_attribute(int* value, int which, CUdevice device) {
  return guarded([&]() -> CUresult {
    const Device& at = device_at(device);
    if (value == nullptr) return kCudaInvalidValue;
    return attribute(at.model(), at.ordinal(), which, value) ? kCudaSuccess : kCudaInvalidValue;
  });
}

CUresult device_total_mem(std::size_t* bytes, CUdevice device) {
  return guarded([&]() -> CUresult {
    const Device& at = device_at(device);
    if (bytes == nullptr) return kCudaInvalidValue;
    *bytes = usable_memory(at.model());
    return kCudaSuccess;
  });
}

}  // namespace annulus::simulator::driver::entry
