#include "exchange/nccl.h"

#include <fmt/format.h>

#include "base/env.h"
#include "base/fail.h"

namespace annulus::exchange {

NcclPointer open_nccl(const device::Context& context, bool own_simulator) {
  const abi::LibrarySearch search = abi::default_search(base::read_environment());
  auto library = std::make_shared<const abi::NcclLibrary>(
      own_simulator ? abi::find_simulated_nccl(search) : abi::find_nccl(search));
  const LibraryReport& report = library->report;
  if (!report.usable()) base::fail(ErrorCode::kLibrary, "{}", report.problem);
  if (report.simulated != context.info().simulated) {
    base::fail(ErrorCode::kLibrary,
               "{} is {} and the NCCL at {} is {}: put the folder of the other NCCL first in "
               "ANNULUS_LIBRARY_PATH",
               context.info().name, context.info().simulated ? "simulated" : "a GPU", report.path,
               report.simulated ? "the simulator's" : "a real one");
  }
  return library;
}

std::string text_of(const abi::NcclTable& table, abi::NcclResult code, const char* call) {
  const char* const name = table.get_error_string(code);
  const char* const last = table.get_last_error(nullptr);
  std::string text =
      fmt::format("{} returned {} ({})", call, name == nullptr ? "an unknown code" : name, code);
  if (last != nullptr && *last != '\0') text += fmt::format("; NCCL's last message: {}", last);
  return text;
}

ErrorCode error_of(abi::NcclResult code) {
  switch (code) {
    case abi::kNcclInvalidArgument:
    case abi::kNcclInvalidUsage:
      return ErrorCode::kInvalidArgument;
    case abi::kNcclUnhandledCudaError:
      return ErrorCode::kDevice;
    default:
      return ErrorCode::kCommunication;
  }
}

}  // namespace annulus::exchange
