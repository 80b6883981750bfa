#include "abi/check.h"

#include <string>
#include <string_view>
#include <vector>

#include "base/fail.h"
#include "base/json.h"

namespace annulus::abi {
namespace {

// "src/device/memory.cc:41": the path below the repository, wherever it was built.
std::string place(const std::source_location& where) {
  std::string_view file = where.file_name();
  if (const std::size_t at = file.rfind("src/"); at != file.npos) file.remove_prefix(at);
  return fmt::format("{}:{}", file, where.line());
}

const char* or_unknown(const char* text) { return text != nullptr ? text : "unknown"; }

// The message of the simulator's last fault on the device of the current context; empty on a real
// driver, and where nothing was kept.
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
    return text.data();  // not the JSON expected: the text itself says the most
  }
}

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
  if (code == kCudaNotInitialized || code == kCudaDeinitialized) {
    message +=
        code == kCudaNotInitialized
            ? "; if the process was forked after the driver was opened, the child can use no "
              "device: open devices after fork(), or exec"
            : "; the driver is being unloaded: give back devices before the process ends";
  }
  const bool sticky = is_sticky(code);
  if (sticky || code == kCudaInvalidPtx || code == kCudaNoBinaryForGpu) {
    if (const std::string detail = simulator_message(table); !detail.empty()) {
      message += "; the simulator says: " + detail;
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
