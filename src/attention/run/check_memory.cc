#include "attention/run/check_memory.h"

#include "base/fail.h"
#include "device/pointer.h"

namespace annulus::attention {

void check_memory(const device::Context& context, const Operands& operands, const void* workspace) {
  struct Named {
    const char* name;
    const void* address;
  };
  for (const auto& [name, address] : {Named{"Q", operands.q},
                                      {"K", operands.k},
                                      {"V", operands.v},
                                      {"O", operands.o},
                                      {"LSE", operands.lse},
                                      {"state_in.acc", operands.state_in.acc},
                                      {"state_in.m", operands.state_in.m},
                                      {"state_in.l", operands.state_in.l},
                                      {"state_out.acc", operands.state_out.acc},
                                      {"state_out.m", operands.state_out.m},
                                      {"state_out.l", operands.state_out.l},
                                      {"scale_q", operands.scale_q},
                                      {"scale_k", operands.scale_k},
                                      {"scale_v", operands.scale_v},
                                      {"the workspace", workspace}}) {
    if (address == nullptr || device::is_reachable(context, address)) continue;
    base::fail(
        ErrorCode::kInvalidArgument,
        "{} at {:#x} is not memory of the device; it may be memory of the host. Allocate it on "
        "the device and copy to it",
        name, reinterpret_cast<std::uintptr_t>(address));
  }
}

}  // namespace annulus::attention
