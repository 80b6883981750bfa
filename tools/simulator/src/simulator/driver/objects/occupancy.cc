#include "simulator/driver/objects/occupancy.h"

#include <algorithm>

#include "base/math.h"

namespace annulus::simulator::driver {

int blocks_per_sm(const DeviceModel& model, const KernelInfo& info, std::uint32_t threads,
                  std::size_t dynamic_shared_bytes) {
  const auto warps = static_cast<int>(base::ceil_div(threads, 32u));
  const int by_threads = kMaxThreadsPerSm / 32 / warps;
  const std::uint32_t registers = info.max_registers != 0 ? info.max_registers : info.registers;
  const int of_a_warp = 32 * static_cast<int>(base::round_up(std::max(registers, 1u), 8u));
  const int by_registers = std::max(kRegistersPerSm / of_a_warp / warps, 1);
  const std::size_t shared =
      std::size_t{info.static_shared_bytes} + dynamic_shared_bytes + std::size_t{kSharedReserved};
  const auto by_shared = static_cast<std::size_t>(model.shared_per_sm) / shared;
  const int blocks = std::min({by_threads, by_registers, kMaxBlocksPerSm});
  return by_shared < static_cast<std::size_t>(blocks) ? static_cast<int>(by_shared) : blocks;
}

std::uint64_t blocks_per_device(const DeviceModel& model, const KernelInfo& info,
                                std::uint32_t threads, std::size_t dynamic_shared_bytes) {
  return static_cast<std::uint64_t>(model.multiprocessors) *
         static_cast<std::uint64_t>(blocks_per_sm(model, info, threads, dynamic_shared_bytes));
}

}  // namespace annulus::simulator::driver
