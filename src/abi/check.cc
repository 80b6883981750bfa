#include "abi/check.h"

#include <string>
#include <string_view>
#include <vector>

#include "base/fail.h"
#include "base/json.h"

namespace annulus::abi {
namespace {

// "src/device/memory.cc:41": the path below the repository's root, regardless of the build's
// location.
std::string place(const std::source_location& where) {
  std::string_view file = where.file_name();
  if (const std::size_t at = file.rfind("src/"); at != file.npos) file.remove_prefix(at);
  return fmt::format("{}:{}", file, where.line());
}

const char* or_unknown(const char* text) { return text != nullptr ? text : "unknown"; }

// The message of the simulator's last fault on the device of the current context. Empty on a real
// driver, and if there was no fault.
std::string simulator_message(const CudaTable& table) {
  CUdevice device = 0;
  if (table.simulator_last_fault == nullptr) return {};
  if (table.ctx_get_device(&device) != kCudaSuccess) return {};
  std::vector<char> text(16384);
  if (table.simulator_last_fault(device, text.data(), text.size()) != kCudaSuccess) return {};
  text.back() = '\0';
  try {
    return base::parse_json(text.data(), "the simulator's fault").value("message", "");
  } catch (const std::exception&) {
    return text.data();  // it is not the expected JSON, so its text is the best message
  }
}

// The remedies for error codes. Those for drivers that do not start follow the descriptions of
// CUresult in the CUDA Driver API, "Data types used by CUDA driver".
struct Remedy {
  CUresult code;
  const char* text;
};
constexpr Remedy kRemedies[] = {
    {kCudaNotInitialized,
     "if the process was forked after the driver was opened, the child can use no device: open "
     "devices after fork(), or exec"},
    {kCudaDeinitialized, "the driver is being unloaded: release devices before the process ends"},
    {kCudaStubLibrary,
     "this libcuda is the toolkit's stub for linking: take its folder out of LD_LIBRARY_PATH and "
     "ANNULUS_LIBRARY_PATH, so that the driver's own library is found"},
    {kCudaDeviceUnavailable,
     "another process has the GPU for itself, or the GPU is in a fault state: see nvidia-smi for "
     "its compute mode and processes"},
    {kCudaSystemNotReady,
     "a service of the system has not started: GPUs that NVSwitch joins need "
     "nvidia-fabricmanager, in the version of the driver"},
    {kCudaSystemDriverMismatch,
     "libcuda is of another version than the loaded kernel module, as after an update of the "
     "driver: restart the machine, or load the module anew; in a container, mount the libcuda of "
     "the host"},
    {kCudaCompatNotSupported,
     "this libcuda is of a forward compatibility package (cuda-compat), which only runs on "
     "data-centre GPUs: take its folder out of LD_LIBRARY_PATH, or install a newer driver"},
    {kCudaUnknown,
     "if no call has succeeded before, the kernel modules may be missing: run nvidia-modprobe -u, "
     "and see dmesg for messages of NVRM"},
};

}  // namespace

bool is_sticky(CUresult code) {
  switch (code) {
    case kCudaIllegalAddress:
    case kCudaLaunchTimeout:
    case kCudaAssert:
    case kCudaHardwareStackError:
    case kCudaIllegalInstruction:
    case kCudaMisalignedAddress:
    case kCudaInvalidAddressSpace:
    case kCudaInvalidPc:
    case kCudaLaunchFailed:
      return true;
    default:
      return false;
  }
}

void fail(const CudaTable& table, CUresult code, const char* call,
          const std::source_location& where) {
  const char* name = nullptr;
  const char* text = nullptr;
  table.get_error_name(code, &name);
  table.get_error_string(code, &text);
  std::string message = fmt::format("{} returned {} ({}): {}; at {}", call, or_unknown(name), code,
                                    or_unknown(text), place(where));
  for (const Remedy& remedy : kRemedies) {
    if (remedy.code == code) message += fmt::format("; {}", remedy.text);
  }
  const bool sticky = is_sticky(code);
  if (sticky || code == kCudaInvalidPtx || code == kCudaNoBinaryForGpu) {
    if (const std::string detail = simulator_message(table); !detail.empty()) {
      message += "; the simulator reports: " + detail;
    }
  }
  const ErrorCode kind = code == kCudaOutOfMemory ? ErrorCode::kOutOfMemory
                         : sticky                 ? ErrorCode::kFault
                                                  : ErrorCode::kDevice;
  throw Error(kind, message);
}

void fail(const NvrtcTable& table, NvrtcResult code, const char* call,
          const std::source_location& where) {
  ErrorCode kind = ErrorCode::kLibrary;
  switch (code) {
    case kNvrtcOutOfMemory:
      kind = ErrorCode::kOutOfMemory;
      break;
    case kNvrtcInvalidOption:
    case kNvrtcCompilation:
    case kNvrtcNameExpressionNotValid:
      kind = ErrorCode::kCompile;
      break;
    default:
      break;
  }
  base::fail(kind, "{} returned {} ({}); at {}", call, or_unknown(table.get_error_string(code)),
             code, place(where));
}

void fail(const NcclTable& table, NcclResult code, const char* call,
          const std::source_location& where) {
  base::fail(ErrorCode::kDevice, "{} returned {} ({}): {}; at {}", call,
             or_unknown(table.get_error_string(code)), code,
             or_unknown(table.get_last_error(nullptr)), place(where));
}

}  // namespace annulus::abi
