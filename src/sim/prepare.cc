// What a CTA starts with: register files, constants, special registers.

#include <algorithm>
#include <cstring>

#include "sim/run.h"

namespace annulus::sim {
namespace {

std::uint32_t special_value(const Context& context, Special special, std::uint32_t thread, int lane,
                            const LaunchRequest& request) {
  const std::uint32_t* block = context.block;
  const auto bit = static_cast<std::uint32_t>(lane);
  switch (special) {
    case Special::kTidX:
      return thread % block[0];
    case Special::kTidY:
      return thread / block[0] % block[1];
    case Special::kTidZ:
      return thread / block[0] / block[1];
    case Special::kNtidX:
      return block[0];
    case Special::kNtidY:
      return block[1];
    case Special::kNtidZ:
      return block[2];
    case Special::kCtaidX:
      return context.cta[0];
    case Special::kCtaidY:
      return context.cta[1];
    case Special::kCtaidZ:
      return context.cta[2];
    case Special::kNctaidX:
      return context.grid[0];
    case Special::kNctaidY:
      return context.grid[1];
    case Special::kNctaidZ:
      return context.grid[2];
    case Special::kLaneid:
      return bit;
    case Special::kWarpid:
      return thread / kLanes;
    case Special::kNwarpid:
      return context.warp_count;
    case Special::kSmid:
      return 0;
    case Special::kNsmid:
      return 1;
    case Special::kGridid:
      return 1;
    case Special::kLanemaskEq:
      return 1u << bit;
    case Special::kLanemaskLe:
      return (2u << bit) - 1;
    case Special::kLanemaskLt:
      return (1u << bit) - 1;
    case Special::kLanemaskGe:
      return ~((1u << bit) - 1);
    case Special::kLanemaskGt:
      return bit == 31 ? 0 : ~((2u << bit) - 1);
    case Special::kDynamicShared:
      return request.dynamic_shared_bytes;
    case Special::kTotalShared:
      return request.dynamic_shared_bytes + context.program->info.static_shared_bytes;
  }
  return 0;
}

void fill_specials(Context& context, const LaunchRequest& request) {
  for (Warp& warp : context.warps) {
    for (const SpecialSlot& slot : context.program->specials) {
      auto* lanes = reinterpret_cast<std::uint32_t*>(warp.registers + slot.slot);
      for (int lane = 0; lane < kLanes; ++lane) {
        lanes[lane] =
            special_value(context, slot.special,
                          static_cast<std::uint32_t>(warp.index * kLanes + lane), lane, request);
      }
    }
  }
}

void fill_constants(const Context& context, std::byte* registers) {
  for (const Constant& constant : context.program->constants) {
    for (int lane = 0; lane < kLanes; ++lane) {
      std::memcpy(registers + constant.slot + lane * constant.bytes, &constant.bits,
                  static_cast<std::size_t>(constant.bytes));
    }
  }
}

}  // namespace

void prepare(Context& context, const LaunchRequest& request, GlobalMemory& memory) {
  context.program = request.program;
  context.memory = &memory;
  context.peers = request.peers;
  context.parameters = request.parameters.data();
  std::copy_n(request.grid, 3, context.grid);
  std::copy_n(request.block, 3, context.block);
  const std::uint32_t threads = request.block[0] * request.block[1] * request.block[2];
  context.threads = threads;
  context.warp_count = (threads + kLanes - 1) / kLanes;
  const Program& program = *request.program;
  const std::size_t file = (program.register_bytes + 4095u) / 4096u * 4096u + 64;
  context.register_files.reset(static_cast<std::byte*>(std::aligned_alloc(
      4096, file / 4096 * 4096 * context.warp_count + 4096 * context.warp_count)));
  context.warps.clear();
  context.warps.resize(context.warp_count);
  for (std::uint32_t i = 0; i < context.warp_count; ++i) {
    Warp& warp = context.warps[i];
    warp.index = static_cast<int>(i);
    // The files of different warps start at different cache sets.
    warp.registers = context.register_files.get() + i * (file / 4096 * 4096 + 4096);
    fill_constants(context, warp.registers);
    warp.local.resize(std::size_t{program.info.local_bytes} * kLanes);
    warp.local_written.resize(warp.local.size());
    warp.written.resize(program.watched);
  }
  context.shared.resize(program.info.static_shared_bytes + request.dynamic_shared_bytes +
                        (program.dynamic_shared_offset - program.info.static_shared_bytes));
  context.recent.assign(program.code.size(), {});
}

void start_cta(Context& context, const LaunchRequest& request, std::uint64_t cta_index,
               const abi::SimulatorOptions& options) {
  context.cta[0] = static_cast<std::uint32_t>(cta_index % request.grid[0]);
  context.cta[1] = static_cast<std::uint32_t>(cta_index / request.grid[0] % request.grid[1]);
  context.cta[2] = static_cast<std::uint32_t>(cta_index / request.grid[0] / request.grid[1]);
  context.dice = Dice(options.seed * 0x9e3779b97f4a7c15u + cta_index);
  context.landing = options.landing;
  context.executed = 0;
  context.barriers.fill(NamedBarrier{});
  // What was there before is nobody's business: NaN in every float format, and large as an index.
  std::ranges::fill(context.shared, std::byte{0xff});
  if (options.checked != 0) {
    context.shadow.reset(static_cast<std::uint32_t>(context.shared.size()),
                         static_cast<int>(context.warp_count));
  }
  if (context.races != nullptr) context.stamp = context.races->stamp(cta_index, 0);
  if (context.order != nullptr) context.order->start(context.clocks, cta_index, context.warp_count);
  fill_specials(context, request);
  for (Warp& warp : context.warps) {
    warp.live = context.warp_lanes(warp.index);
    warp.groups.assign(1, Group{});
    warp.groups[0].mask = warp.live;
    warp.copies.reset();
    std::fill(warp.written.begin(), warp.written.end(), 0);
    std::fill(warp.local_written.begin(), warp.local_written.end(), std::uint8_t{0});
  }
  context.pc = 0;
  context.warp = &context.warps[0];
}

}  // namespace annulus::sim
