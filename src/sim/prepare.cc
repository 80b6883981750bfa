// What a CTA starts with: register files, constants, special registers.

#include <algorithm>
#include <cstring>

#include "sim/cluster.h"
#include "sim/run.h"

namespace annulus::sim {
namespace {

int dimension(Special special, Special first) {
  return static_cast<int>(special) - static_cast<int>(first);
}

std::uint32_t special_value(const Context& context, Special special, std::uint32_t thread, int lane,
                            const LaunchRequest& request) {
  const std::uint32_t* block = context.block;
  const std::uint32_t* shape = request.cluster;
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
    case Special::kClusteridX:
    case Special::kClusteridY:
    case Special::kClusteridZ: {
      const int d = dimension(special, Special::kClusteridX);
      return context.cta[d] / shape[d];
    }
    case Special::kNclusteridX:
    case Special::kNclusteridY:
    case Special::kNclusteridZ: {
      const int d = dimension(special, Special::kNclusteridX);
      return context.grid[d] / shape[d];
    }
    case Special::kClusterCtaidX:
    case Special::kClusterCtaidY:
    case Special::kClusterCtaidZ: {
      const int d = dimension(special, Special::kClusterCtaidX);
      return context.cta[d] % shape[d];
    }
    case Special::kClusterNctaidX:
    case Special::kClusterNctaidY:
    case Special::kClusterNctaidZ:
      return shape[dimension(special, Special::kClusterNctaidX)];
    case Special::kClusterCtarank:
      return context.rank;
    case Special::kClusterNctarank:
      return shape[0] * shape[1] * shape[2];
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

void prepare_cta(Context& context, const LaunchRequest& request, GlobalMemory& memory) {
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
  context.warpgroups.resize(program.matrix_forms.empty() ? 0 : context.warp_count / 4);
}

// All registers that the launch gives the CTA are with its warps.
void start_registers(Context& context, const KernelInfo& info) {
  RegisterPool& pool = context.register_pool;
  pool.active = info.max_registers != 0;
  pool.free = 0;
  pool.steps.assign(context.warp_count / 4 + 1, {});
  pool.steps_done.assign(context.warp_count, 0);
  for (Warp& warp : context.warps) warp.maximum_registers = info.max_registers;
}

void start_cta(Context& context, const LaunchRequest& request, std::uint64_t cta_index,
               const abi::SimulatorOptions& options) {
  context.dice = Dice(options.seed * 0x9e3779b97f4a7c15u + cta_index);
  context.elected = static_cast<std::uint32_t>(Dice(options.seed).next());
  context.by_warp = options.products == 0 ? (context.dice.next() & 1) != 0 : options.products == 2;
  context.checked = options.checked != 0;
  context.landing = options.landing;
  context.executed = 0;
  for (NamedBarrier& barrier : context.barriers) {
    if (barrier.open) barrier = NamedBarrier{};
  }
  context.mbarriers.reset(static_cast<std::uint32_t>(context.shared.size()));
  context.remote.clear();
  for (Warpgroup& warpgroup : context.warpgroups) warpgroup.reset();
  start_registers(context, context.program->info);
  // What was there before is nobody's business: NaN in every float format, and large as an index.
  std::ranges::fill(context.shared, std::byte{0xff});
  if (options.checked != 0) {
    context.shadow.reset(static_cast<std::uint32_t>(context.shared.size()),
                         static_cast<int>(context.warp_count), context.cluster->clocks,
                         context.first_agent, context.by_warp);
  }
  if (context.races != nullptr) context.stamp = context.races->stamp(cta_index, 0);
  if (context.order != nullptr) context.order->start(context.clocks, cta_index, context.warp_count);
  fill_specials(context, request);
  for (Warp& warp : context.warps) {
    warp.live = context.warp_lanes(warp.index);
    warp.groups.assign(1, Group{});
    warp.groups[0].mask = warp.live;
    warp.copies.reset();
    warp.matrix.reset(context.program->matrix_registers);
    warp.bulk_groups.fill(0);
    warp.cluster_arrived = warp.cluster_unwaited = 0;
    std::fill(warp.written.begin(), warp.written.end(), 0);
    std::fill(warp.local_written.begin(), warp.local_written.end(), std::uint8_t{0});
  }
  context.pc = 0;
  context.warp = &context.warps[0];
}

}  // namespace

void prepare(Cluster& cluster, const LaunchRequest& request, GlobalMemory& memory) {
  const std::uint32_t count = request.cluster[0] * request.cluster[1] * request.cluster[2];
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    Context& context = *cluster.ctas.emplace_back(std::make_unique<Context>());
    prepare_cta(context, request, memory);
    context.cluster = &cluster;
    context.rank = rank;
    context.first_agent = rank * context.warp_count;
  }
  cluster.running = cluster.ctas.front().get();
}

void start_cluster(Cluster& cluster, const LaunchRequest& request, std::uint64_t cluster_index,
                   const abi::SimulatorOptions& options) {
  const auto count = static_cast<std::uint32_t>(cluster.ctas.size());
  cluster.clocks.reset(count * cluster.ctas.front()->warp_count);
  cluster.copies.reset();
  cluster.barrier = {};
  cluster.events = cluster.polls = cluster.polled_events = 0;
  const std::uint32_t* shape = request.cluster;
  const std::uint64_t wide = request.grid[0] / shape[0];
  const std::uint64_t high = request.grid[1] / shape[1];
  for (const auto& cta : cluster.ctas) {
    const std::uint32_t rank = cta->rank;
    cta->cta[0] = static_cast<std::uint32_t>(cluster_index % wide) * shape[0] + rank % shape[0];
    cta->cta[1] = static_cast<std::uint32_t>(cluster_index / wide % high) * shape[1] +
                  rank / shape[0] % shape[1];
    cta->cta[2] = static_cast<std::uint32_t>(cluster_index / wide / high) * shape[2] +
                  rank / shape[0] / shape[1];
    const std::uint64_t row = cta->cta[1] + std::uint64_t{request.grid[1]} * cta->cta[2];
    start_cta(*cta, request, cta->cta[0] + request.grid[0] * row, options);
  }
  cluster.running = cluster.ctas.front().get();
}

}  // namespace annulus::sim
