#include "planner/prepared.h"

#include <cstdint>

#include "attention/run/check_memory.h"
#include "base/fail.h"

namespace annulus::planner {
namespace {

void check_workspace(std::size_t bytes, const void* workspace) {
  if (bytes == 0) return;
  if (workspace == nullptr) {
    base::fail(ErrorCode::kInvalidArgument,
               "the plan needs {} bytes of workspace, but none was given", bytes);
  }
  // A kernel that used a misaligned address would fault, and the context would be lost.
  if (const auto address = reinterpret_cast<std::uintptr_t>(workspace); address % 16 != 0) {
    base::fail(ErrorCode::kInvalidArgument, "the workspace at {:#x} is not a multiple of 16 bytes",
               address);
  }
}

}  // namespace

std::size_t Prepared::workspace_bytes() const {
  return static_cast<std::size_t>(selector ? selector->plan().workspace_bytes
                                           : forward.workspace_bytes());
}

void Prepared::put(device::LaunchSink& to, const Operands& operands, void* workspace,
                   const SelectionBuffers* buffers) const {
  if (!selector && buffers != nullptr) {
    base::fail(ErrorCode::kInvalidArgument,
               "the plan has no selection; run it without buffers of one, or plan with one");
  }
  if (checked_on) attention::check_memory(*checked_on, operands, workspace);
  // Without buffers, only the workspace is checked. A selection checks it together with the
  // buffers.
  if (buffers == nullptr) check_workspace(workspace_bytes(), workspace);
  if (!selector) return forward.put(to, operands, workspace);
  const attention::Forward& attend = forward.branches().front();
  attend.check(operands);
  const SelectionBuffers none;
  const kernels::TileListParams lists =
      selector->put(to, operands, buffers == nullptr ? none : *buffers, workspace, attend.lists());
  attend.put(to, operands, lists, static_cast<std::byte*>(workspace) + selector->plan().attend);
}

}  // namespace annulus::planner
