// Instructions of sm_90 for warps and warpgroups, other than products: elect.sync (PTX ISA 9.0,
// section 9.7.13.14), setmaxnreg (9.7.19.5), griddepcontrol (9.7.13.13), proxy fences (9.7.13.4).

#include "simulator/machine/warpgroup.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "simulator/machine/cluster.h"
#include "simulator/ops/handlers.h"
#include "simulator/ops/proxy_fence.h"

namespace annulus::simulator {
namespace {

// The lane that elect.sync elects. In the ISA it is always the same lane for the same mask, but the
// ISA does not define which. With `reading=strict` it follows from the mask and from a number that
// is drawn from the seed. Kernels in production rely on the lowest lane: CUTLASS lets thread 0 of a
// warpgroup expect the bytes of copies that the elected thread issues.
int elected(const std::optional<std::uint32_t>& draw, Mask members) {
  if (!draw) return lowest_lane(members);
  const std::uint64_t mixed = (std::uint64_t{*draw} + members) * 0x9e3779b97f4a7c15u;
  auto skip = static_cast<std::uint32_t>((mixed >> 33) %
                                         static_cast<std::uint64_t>(std::popcount(members)));
  for (; skip > 0; --skip) members &= members - 1;
  return lowest_lane(members);
}

// The Inst: d the elected lane, c the predicate. The masks are copied, because the destination may
// have the slot of a mask that is not used again.
void elect(Warp& warp, const Inst& inst, Mask mask) {
  std::array<std::uint32_t, kLanes> members;
  std::copy_n(warp.lanes<std::uint32_t>(inst.members), kLanes, members.begin());
  Mask leaders = 0;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    const Mask named = members[static_cast<std::size_t>(lane)];
    if (named != members[static_cast<std::size_t>(lowest_lane(mask))]) {
      raise_at(FaultKind::kInvalidOperand, lane,
               "lanes of a warp pass different member masks to elect.sync");
    }
    const int leader = elected(warp.cta->elected, named & warp.live);
    warp.lanes<std::uint32_t>(inst.d)[lane] = static_cast<std::uint32_t>(leader);
    if (leader == lane) leaders |= 1u << lane;
  }
  warp.set_predicate(inst.c, leaders, mask);
}

// Throws unless all warps of a warpgroup execute the same sequence of setmaxnreg.
void check_alike(Warp& warp, std::uint32_t count) {
  RegisterPool& pool = warp.cta->register_pool;
  const auto index = static_cast<std::size_t>(warp.index);
  std::vector<RegisterPool::Step>& steps = pool.steps[index / 4];
  const std::size_t at = pool.steps_done[index];
  if (at == steps.size()) steps.push_back({warp.pc, count});
  if (steps[at].pc == warp.pc && steps[at].count == count) return;
  raise(FaultKind::kInvalidOperand,
        fmt::format("the warps of a warpgroup execute different setmaxnreg: {} and {} registers",
                    steps[at].count, count));
}

// The Inst: imm the registers per thread; small[0] means inc, not dec. An inc waits until other
// warps have released enough registers.
void set_registers(Warp& warp, const Inst& inst, Mask) {
  Cta& cta = *warp.cta;
  RegisterPool& pool = cta.register_pool;
  if (!pool.active)
    return;  // ptxas ignores setmaxnreg if the kernel does not state a number of
             // registers
  const auto count = static_cast<std::uint32_t>(inst.imm);
  check_alike(warp, count);
  if (inst.small[0] == 0 ? count > warp.maximum_registers : count < warp.maximum_registers) {
    raise(FaultKind::kInvalidOperand,
          fmt::format("setmaxnreg.{} to {} registers, but the warp has {}",
                      inst.small[0] == 0 ? "dec" : "inc", count, warp.maximum_registers));
  }
  if (inst.small[0] == 0) {
    pool.free += warp.maximum_registers - count;
    ++cta.cluster->events;
    cta.wake({Wait::kRegisters, 0});
  } else {
    if (count - warp.maximum_registers > pool.free) {
      return warp.suspend({Wait::kRegisters, 0, count});
    }
    pool.free -= count - warp.maximum_registers;
  }
  warp.maximum_registers = count;
  ++pool.steps_done[static_cast<std::size_t>(warp.index)];
}

void nothing(Warp&, const Inst&, Mask) {}

void proxy_fence(Warp& warp, const Inst&, Mask mask) {
  Cta& cta = *warp.cta;
  if (!cta.checked) return;
  cta.cluster->clocks.fence(warp.agent, mask | ~warp.live, mask == warp.live);
}

// This fence does not affect shared memory.
void global_proxy_fence(Warp& warp, const Inst&, Mask mask) {
  warp.cta->block_shadow.fence(warp.index, mask | ~warp.live, mask == warp.live);
}

void init_fence(Warp& warp, const Inst&, Mask) {
  Cta& cta = *warp.cta;
  if (cta.checked) cta.mbarriers.fence_inits(warp.agent, cta.cluster->clocks.clock(warp.agent));
}

}  // namespace

void decode_elect(Decoder& decoder) {
  Inst& inst = decoder.inst();
  inst.kind = Class::kShuffle;
  const ptx::Operand& destination = decoder.operand(0);
  if (!decoder.has("sync") || destination.kind != ptx::OperandKind::kPair) decoder.unsupported();
  inst.convergence = Convergence::kMembers;
  inst.members = decoder.in(1, kU32);
  inst.d = decoder.out(destination.elements[0], kU32);
  inst.c = decoder.predicate_out(destination.elements[1]);
  decoder.handler(elect);
}

void decode_setmaxnreg(Decoder& decoder) {
  Inst& inst = decoder.inst();
  inst.convergence = Convergence::kWarp;
  inst.flow = Flow::kBarrier;
  inst.kind = Class::kOther;
  if (!decoder.has("inc") && !decoder.has("dec")) decoder.malformed(".inc or .dec is needed");
  inst.small[0] = decoder.has("inc");
  inst.imm = decoder.immediate(0);
  if (inst.imm < 24 || inst.imm > 256 || inst.imm % 8 != 0) {
    decoder.malformed("the count has to be a multiple of 8 from 24 to 256");
  }
  std::uint32_t& largest = decoder.program().largest_setmaxnreg;
  largest = std::max(largest, static_cast<std::uint32_t>(inst.imm));
  decoder.handler(set_registers);
}

// Work of a stream runs after all earlier work has ended, so there is nothing to wait for.
void decode_griddepcontrol(Decoder& decoder) {
  if (!decoder.has("wait") && !decoder.has("launch_dependents")) decoder.unsupported();
  decoder.inst().kind = Class::kBarrier;
  decoder.handler(nothing);
}

void decode_proxy_fence(Decoder& decoder) {
  decoder.inst().kind = Class::kBarrier;
  if (decoder.has("mbarrier_init")) return decoder.handler(init_fence);
  if (!decoder.has("async")) decoder.unsupported("this proxy fence is not modelled");
  const bool shared = decoder.has("shared::cta") || decoder.has("shared::cluster");
  if (!shared) decoder.program().fences_global_proxy = true;
  if (decoder.has("global")) return decoder.handler(nothing, global_proxy_fence);
  decoder.handler(proxy_fence);
}

}  // namespace annulus::simulator
