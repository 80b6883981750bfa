#include "simulator/fault/fault.h"

#include <fmt/core.h>

#include "base/json.h"
#include "base/of_thread.h"

namespace annulus::simulator {

namespace {

struct Name {
  FaultKind kind;
  const char* text;
};
constexpr Name kNames[] = {
    {FaultKind::kOutOfBounds, "out of bounds"},
    {FaultKind::kPeerAccess, "peer access not enabled"},
    {FaultKind::kMisaligned, "misaligned address"},
    {FaultKind::kUninitialized, "uninitialised read"},
    {FaultKind::kSharedRace, "shared memory race"},
    {FaultKind::kGlobalRace, "global memory race"},
    {FaultKind::kMissingWait, "missing wait"},
    {FaultKind::kEarlyReuse, "early reuse"},
    {FaultKind::kUnorderedWrites, "unordered writes"},
    {FaultKind::kFreedInUse, "freed in use"},
    {FaultKind::kInFlight, "access to bytes in flight"},
    {FaultKind::kRegisterInFlight, "access to a register in flight"},
    {FaultKind::kMissingFence, "missing fence"},
    {FaultKind::kDivergentBarrier, "divergent barrier"},
    {FaultKind::kDeadlock, "deadlock"},
    {FaultKind::kBarrierMisuse, "barrier misuse"},
    {FaultKind::kUnwaited, "unwaited asynchronous effect"},
    {FaultKind::kInvalidOperand, "invalid operand"},
    {FaultKind::kTrap, "trap"},
    {FaultKind::kTimeout, "timeout"},
    {FaultKind::kUnsupported, "unsupported"},
    {FaultKind::kAssert, "assert"},
    {FaultKind::kMessageMismatch, "message mismatch"},
    {FaultKind::kEarlyWork, "early work"},
    {FaultKind::kSharedCommunicator, "shared communicator"},
};

ANNULUS_THREAD_LOCAL FaultKinds ignored = 0;

}  // namespace

const char* to_string(FaultKind kind) {
  for (const Name& name : kNames) {
    if (name.kind == kind) return name.text;
  }
  return "unknown fault";
}

std::optional<FaultKind> fault_kind(std::string_view text) {
  for (const Name& name : kNames) {
    if (name.text == text) return name.kind;
  }
  return std::nullopt;
}

IgnoredFaults::IgnoredFaults(FaultKinds kinds) : before_(std::exchange(ignored, kinds)) {}
IgnoredFaults::~IgnoredFaults() { ignored = before_; }

bool is_ignored(FaultKind kind) { return (ignored & bit(kind)) != 0; }

void report(const Fault& fault) {
  if (!is_ignored(fault.kind)) throw Fault(fault);
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
  const base::Json object = {{"kind", to_string(kind)},
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
  // A file named in the PTX may have a name that is not valid UTF-8.
  return object.dump(-1, ' ', false, base::Json::error_handler_t::replace);
}

void raise(FaultKind kind, std::string detail, int lane) {
  Fault fault;
  fault.kind = kind;
  fault.detail = std::move(detail);
  fault.lane = lane;
  throw fault;
}

}  // namespace annulus::simulator
