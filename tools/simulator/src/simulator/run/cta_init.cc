#include "simulator/run/cta_init.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/math.h"
#include "simulator/machine/cta.h"
#include "simulator/run/special_value.h"

namespace annulus::simulator {
namespace {

void fill_specials(Cta& cta, const LaunchRequest& request) {
  for (Warp& warp : cta.warps) {
    for (const SpecialSlot& slot : cta.program->specials) {
      auto* lanes = reinterpret_cast<std::uint32_t*>(warp.registers + slot.slot);
      for (int lane = 0; lane < kLanes; ++lane) {
        const auto thread = static_cast<std::uint32_t>(warp.index * kLanes + lane);
        lanes[lane] = special_value(cta, request, slot.special, thread);
      }
    }
  }
}

void fill_constants(const Cta& cta, std::byte* registers) {
  for (const Constant& constant : cta.program->constants) {
    for (int lane = 0; lane < kLanes; ++lane) {
      std::memcpy(registers + constant.slot + lane * constant.bytes, &constant.bits,
                  static_cast<std::size_t>(constant.bytes));
    }
  }
}

void prepare_cta(Cta& cta, const LaunchRequest& request, GlobalMemory& memory) {
  cta.program = request.program;
  cta.global.memory = &memory;
  cta.global.peers = request.peers;
  cta.parameters = request.parameters.data();
  cta.prints = request.prints;
  cta.heap = request.heap;
  std::copy_n(request.grid, 3, cta.grid);
  std::copy_n(request.block, 3, cta.block);
  const std::uint32_t threads = request.block[0] * request.block[1] * request.block[2];
  cta.threads = threads;
  const std::uint32_t warps = base::ceil_div(threads, kLanes);
  const Program& program = *request.program;
  const std::size_t file = (program.register_bytes + 4095u) / 4096u * 4096u + 64;
  cta.register_files.reset(
      static_cast<std::byte*>(std::aligned_alloc(4096, file / 4096 * 4096 * warps + 4096 * warps)));
  if (cta.register_files == nullptr) throw std::bad_alloc();
  cta.warps.clear();
  cta.warps.resize(warps);
  for (std::uint32_t i = 0; i < warps; ++i) {
    Warp& warp = cta.warps[i];
    warp.cta = &cta;
    warp.index = static_cast<int>(i);
    // The extra page keeps files whose size is a power of two of pages from starting at the same
    // sets of the second-level cache. All files start at a page, and so at the same sets of the
    // first-level cache.
    warp.registers = cta.register_files.get() + i * (file / 4096 * 4096 + 4096);
    fill_constants(cta, warp.registers);
    warp.local.resize(std::size_t{program.info.local_bytes} * kLanes);
    warp.local_written.resize(warp.local.size());
    warp.written.resize(program.watched);
  }
  cta.shared.resize(program.info.static_shared_bytes + request.dynamic_shared_bytes +
                    (program.dynamic_shared_offset - program.info.static_shared_bytes));
  cta.global.recent.assign(program.code.size(), {});
  cta.warpgroups.resize(program.matrix_forms.empty() ? 0 : warps / 4);
}

// At the start the warps hold all registers that the launch gives the CTA, and none are free.
void start_registers(Cta& cta, const KernelInfo& info) {
  RegisterPool& pool = cta.register_pool;
  pool.active = info.max_registers != 0;
  pool.free = 0;
  pool.steps.assign(cta.warp_count() / 4 + 1, {});
  pool.steps_done.assign(cta.warp_count(), 0);
  for (Warp& warp : cta.warps) warp.maximum_registers = info.max_registers;
}

// Whether a wait for matrix products covers only the part of the waiting warp.
bool waits_by_warp(const abi::SimulatorOptions& options, Xoshiro256& random) {
  if (options.products != 0) return options.products == 2;
  return options.reading == 0 && (random.next() & 1) != 0;
}

// All random draws follow from the seed and the index of the CTA. Only elect.sync elects the same
// lanes in all CTAs.
void start_cta(Cta& cta, const LaunchRequest& request, std::uint64_t cta_index,
               const abi::SimulatorOptions& options) {
  cta.random = Xoshiro256(options.seed * 0x9e3779b97f4a7c15u + cta_index);
  cta.elected.reset();
  if (options.reading == 0) {
    cta.elected = static_cast<std::uint32_t>(Xoshiro256(options.seed).next());
  }
  cta.by_warp = waits_by_warp(options, cta.random);
  cta.checked = options.checked != 0;
  cta.strict = cta.checked && options.reading == 0;
  cta.landing = options.landing;
  cta.executed = 0;
  for (NamedBarrier& barrier : cta.barriers) {
    if (barrier.open) barrier = NamedBarrier{};
  }
  cta.mbarriers.reset(static_cast<std::uint32_t>(cta.shared.size()));
  cta.remote.clear();
  cta.flights.reset();
  for (Warpgroup& warpgroup : cta.warpgroups) warpgroup.reset();
  start_registers(cta, cta.program->info);
  // A kernel must not see the shared memory of an earlier CTA. The memory starts as NaN in every
  // float format, which is also a large index.
  std::ranges::fill(cta.shared, std::byte{0xff});
  if (options.checked != 0) {
    cta.shadow.reset(static_cast<std::uint32_t>(cta.shared.size()),
                     static_cast<int>(cta.warp_count()), cta.cluster->clocks, cta.warps[0].agent,
                     cta.by_warp, cta.strict);
    cta.block_shadow.reset(*cta.program, cta.cluster->clocks, cta.warps[0].agent);
  }
  GlobalView& global = cta.global;
  if (global.races != nullptr) global.stamp = global.races->stamp(cta_index, 0);
  if (global.order != nullptr) global.order->start(global.clocks, cta_index, cta.warp_count());
  fill_specials(cta, request);
  for (Warp& warp : cta.warps) {
    warp.pc = 0;
    warp.live = cta.warp_lanes(warp.index);
    warp.groups.assign(1, Group{});
    warp.spun = warp.preferred = 0;
    warp.groups[0].mask = warp.live;
    warp.copies.reset();
    warp.matrix.reset(cta.program->matrix_registers);
    warp.bulk_groups.fill(0);
    warp.cluster_arrived = warp.cluster_unwaited = 0;
    std::fill(warp.written.begin(), warp.written.end(), 0);
    std::fill(warp.local_written.begin(), warp.local_written.end(), std::uint8_t{0});
  }
}

}  // namespace

void prepare(Cluster& cluster, const LaunchRequest& request, GlobalMemory& memory) {
  const std::uint32_t count = request.cluster[0] * request.cluster[1] * request.cluster[2];
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    Cta& cta = *cluster.ctas.emplace_back(std::make_unique<Cta>());
    prepare_cta(cta, request, memory);
    cta.cluster = &cluster;
    cta.rank = rank;
    for (Warp& warp : cta.warps) {
      warp.agent = rank * cta.warp_count() + static_cast<ClusterClocks::Agent>(warp.index);
    }
  }
}

void start_cluster(Cluster& cluster, const LaunchRequest& request, std::uint64_t cluster_index,
                   const abi::SimulatorOptions& options) {
  const auto count = static_cast<std::uint32_t>(cluster.ctas.size());
  cluster.clocks.reset(count * cluster.ctas.front()->warp_count());
  cluster.copies.reset();
  cluster.barrier = {};
  cluster.events = cluster.polls = cluster.tests = cluster.polled_events = 0;
  const std::uint32_t* shape = request.cluster;
  const std::uint64_t wide = request.grid[0] / shape[0];
  const std::uint64_t high = request.grid[1] / shape[1];
  for (const auto& cta : cluster.ctas) {
    const std::uint32_t rank = cta->rank;
    cta->index[0] = static_cast<std::uint32_t>(cluster_index % wide) * shape[0] + rank % shape[0];
    cta->index[1] = static_cast<std::uint32_t>(cluster_index / wide % high) * shape[1] +
                    rank / shape[0] % shape[1];
    cta->index[2] = static_cast<std::uint32_t>(cluster_index / wide / high) * shape[2] +
                    rank / shape[0] / shape[1];
    const std::uint64_t row = cta->index[1] + std::uint64_t{request.grid[1]} * cta->index[2];
    start_cta(*cta, request, cta->index[0] + request.grid[0] * row, options);
  }
  cluster.running = &cluster.ctas.front()->warps[0];
}

}  // namespace annulus::simulator
