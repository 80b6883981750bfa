#include "simulator/fault/fault.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace annulus::simulator {

const char* to_string(FaultKind kind) {
  switch (kind) {
    case FaultKind::kOutOfBounds:
      return "out of bounds";
    case FaultKind::kPeerAccess:
      return "peer access not enabled";
    case FaultKind::kMisaligned:
      return "misaligned address";
    case FaultKind::kUninitialized:
      return "uninitialised read";
    case FaultKind::kSharedRace:
      return "shared memory race";
    case FaultKind::kGlobalRace:
      return "global memory race";
    case FaultKind::kMissingWait:
      return "missing wait";
    case FaultKind::kEarlyReuse:
      return "early reuse";
    case FaultKind::kUnorderedWrites:
      return "unordered writes";
    case FaultKind::kFreedInUse:
      return "freed in use";
    case FaultKind::kInFlight:
      return "access to bytes in flight";
    case FaultKind::kRegisterInFlight:
      return "access to a register in flight";
    case FaultKind::kMissingFence:
      return "missing fence";
    case FaultKind::kDivergentBarrier:
      return "divergent barrier";
    case FaultKind::kDeadlock:
      return "deadlock";
    case FaultKind::kBarrierMisuse:
      return "barrier misuse";
    case FaultKind::kUnwaited:
      return "unwaited asynchronous effect";
    case FaultKind::kInvalidOperand:
      return "invalid operand";
    case FaultKind::kTrap:
      return "trap";
    case FaultKind::kTimeout:
      return "timeout";
    case FaultKind::kUnsupported:
      return "unsupported";
  }
  return "unknown fault";
}

std::string Fault::message() const {
  std::string text = fmt::format("{}: {}", to_string(kind), detail);
  if (kernel.empty()) return text;
  text += fmt::format(" in kernel {}", kernel);
  if (line > 0) text += fmt::format(", {}:{}", file, line);
  if (!trace.empty()) text += fmt::format(" ({})", trace);
  if (ptx_line > 0) text += fmt::format(", PTX line {}", ptx_line);
  if (!instruction.empty()) text += fmt::format(" '{}'", instruction);
  text += fmt::format(", block ({},{},{})", block[0], block[1], block[2]);
  if (warp >= 0) text += fmt::format(", warp {}", warp);
  if (lane >= 0) text += fmt::format(", lane {}", lane);
  return text;
}

std::string Fault::json() const {
  const nlohmann::ordered_json object = {{"kind", to_string(kind)},
                                         {"detail", detail},
                                         {"kernel", kernel},
                                         {"file", file},
                                         {"line", line},
                                         {"trace", trace},
                                         {"ptx_line", ptx_line},
                                         {"ptx", instruction},
                                         {"block", {block[0], block[1], block[2]}},
                                         {"warp", warp},
                                         {"lane", lane},
                                         {"message", message()}};
  // A file of the PTX may have a name that is no UTF-8.
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void raise(FaultKind kind, std::string detail, int lane) {
  Fault fault;
  fault.kind = kind;
  fault.detail = std::move(detail);
  fault.lane = lane;
  throw fault;
}

}  // namespace annulus::simulator
