// Barriers of a CTA and of a warp (PTX ISA 9.0, sections 9.7.13.1 and 9.7.13.2).

#include <bit>

#include "sim/cluster.h"
#include "sim/ops/cluster.h"
#include "sim/ops/numbers.h"
#include "sim/run.h"

namespace annulus::sim {
namespace {

enum class Mode : std::uint8_t { kSync, kArrive, kRedPopc, kRedAnd, kRedOr };

// What the waiters of a reduction get.
void give_results(Context& context, const NamedBarrier& barrier) {
  for (const NamedBarrier::Waiter& waiter : barrier.waiters) {
    const Inst& inst = context.program->code[waiter.inst];
    const auto mode = static_cast<Mode>(inst.small[0]);
    if (mode != Mode::kRedPopc && mode != Mode::kRedAnd && mode != Mode::kRedOr) continue;
    std::byte* registers = context.warps[static_cast<std::size_t>(waiter.warp)].registers;
    if (mode == Mode::kRedPopc) {
      auto* d = reinterpret_cast<std::uint32_t*>(registers + inst.d);
      for (Mask rest = waiter.mask; rest != 0; rest &= rest - 1) {
        d[lowest_lane(rest)] = barrier.predicate_count;
      }
    } else {
      const bool value = mode == Mode::kRedAnd ? barrier.predicate_and : barrier.predicate_or;
      Mask& d = *reinterpret_cast<Mask*>(registers + inst.d);
      d = (d & ~waiter.mask) | (value ? waiter.mask : 0);
    }
  }
}

}  // namespace

void complete_barrier(Context& context, NamedBarrier& barrier) {
  give_results(context, barrier);
  for (const NamedBarrier::Waiter& waiter : barrier.waiters) {
    if (context.checked) {
      context.cluster->clocks.acquire(
          barrier.times, context.first_agent + static_cast<ClusterClocks::Agent>(waiter.warp));
    }
    if (context.order != nullptr) context.order->leave(context.clocks, waiter.warp, barrier.order);
    Warp& warp = context.warps[static_cast<std::size_t>(waiter.warp)];
    for (Group& group : warp.groups) {
      if (group.state == GroupState::kWaiting && group.pc == waiter.inst &&
          group.mask == waiter.mask) {
        group.state = GroupState::kRunning;
        ++group.pc;
      }
    }
  }
  barrier = NamedBarrier{};
  ++context.cluster->events;
}

namespace {

// a barrier id, b thread count or kNoSlot, c predicate of a reduction.
template <bool kChecked>
void barrier(Context& context, const Inst& inst, Mask mask) {
  const int lane = lowest_lane(mask);
  const std::uint32_t id = context.lanes<std::uint32_t>(inst.a)[lane];
  const std::uint32_t count = inst.b == kNoSlot ? 0 : context.lanes<std::uint32_t>(inst.b)[lane];
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int other = lowest_lane(rest);
    if (context.lanes<std::uint32_t>(inst.a)[other] != id) {
      raise_at(FaultKind::kInvalidOperand, other, "lanes of a warp name different barriers");
    }
  }
  if (id >= kNamedBarriers) {
    raise_at(FaultKind::kInvalidOperand, lane, "barrier {}: there are 16", id);
  }
  if (inst.b != kNoSlot && (count == 0 || count % kLanes != 0)) {
    raise_at(FaultKind::kInvalidOperand, lane,
             "barrier {} for {} threads: the count is a positive multiple of 32", id, count);
  }
  if (count > context.warp_count * kLanes) {
    raise_at(FaultKind::kInvalidOperand, lane, "barrier {} for {} threads, the CTA has {}", id,
             count, context.warp_count * kLanes);
  }
  const auto mode = static_cast<Mode>(inst.small[0]);
  NamedBarrier& place = context.barriers[id];
  if (!place.open) {
    place = NamedBarrier{};
    place.open = true;
    place.expected = count;
  } else if (place.expected != count) {
    raise_at(FaultKind::kBarrierMisuse, lane, "barrier {} is waiting for {} threads, now for {}",
             id, place.expected, count);
  }
  const std::uint32_t bit = 1u << context.warp->index;
  // A partial warp counts as a whole one; lanes of a diverged warp (barrier without .aligned)
  // count one by one, and lanes that are missing or have left with the first of them.
  std::uint32_t threads = static_cast<std::uint32_t>(std::popcount(mask));
  if ((place.warps & bit) == 0) {
    threads += kLanes - static_cast<std::uint32_t>(std::popcount(context.warp->live));
  } else if (mask == context.warp->live) {
    raise_at(FaultKind::kBarrierMisuse, lane,
             "the warp arrives at barrier {} again before it has completed", id);
  }
  place.warps |= bit;
  if (kChecked) {
    context.cluster->clocks.release(place.times, context.agent(), mask | ~context.warp->live,
                                    mask == context.warp->live);
  }
  if (kChecked && context.order != nullptr) {
    context.order->arrive(context.clocks, context.warp->index, place.order);
  }
  place.arrived += threads;
  if (count != 0 && place.arrived > count) {
    raise_at(FaultKind::kBarrierMisuse, lane, "{} threads arrive at barrier {} for {}",
             place.arrived, id, count);
  }
  if (mode >= Mode::kRedPopc) {
    const Mask values = context.predicate(inst.c, inst.small[1]);
    place.predicate_count += static_cast<std::uint32_t>(std::popcount(values & mask));
    place.predicate_and &= (values & mask) == mask;
    place.predicate_or |= (values & mask) != 0;
  }
  if (mode != Mode::kArrive) {
    place.waiters.push_back({context.warp->index, context.pc, mask});
  }
  if (!barrier_complete(context, place)) {
    context.blocked = mode != Mode::kArrive;
    return;
  }
  // The running group is not in the waiting state: it just goes on.
  complete_barrier(context, place);
}

// bar.warp.sync: the meeting has happened; memory of the lanes is ordered now. With a part of the
// warp, that of the other lanes counts as ordered too: a race between two halves that synchronise
// apart may go unnoticed, but no correct exchange within a half is called one.
template <bool kChecked>
void warp_sync(Context& context, const Inst&, Mask) {
  if (kChecked) context.shadow.tick(context.warp->index);
}

}  // namespace

void decode_bar(Decoder& decoder) {
  Inst& inst = decoder.inst();
  inst.kind = Class::kBarrier;
  if (decoder.has("cluster")) return decode_cluster_barrier(decoder);
  if (decoder.has("warp")) {
    inst.meeting = Meeting::kMembers;
    inst.members = decoder.in(0, kU32);
    return decoder.handler(warp_sync<false>, warp_sync<true>);
  }
  inst.flow = Flow::kBarrier;
  // bar is barrier.aligned: the whole warp takes part. barrier alone counts lanes.
  if (decoder.source().opcode == "bar" || decoder.has("aligned")) inst.meeting = Meeting::kWarp;
  Mode mode = Mode::kSync;
  if (decoder.has("arrive")) {
    mode = Mode::kArrive;
  } else if (decoder.has("red")) {
    mode = decoder.has("popc") ? Mode::kRedPopc : decoder.has("and") ? Mode::kRedAnd : Mode::kRedOr;
  } else if (!decoder.has("sync")) {
    decoder.unsupported();
  }
  inst.small[0] = static_cast<std::uint8_t>(mode);
  const std::size_t first = mode >= Mode::kRedPopc ? 1 : 0;
  inst.a = decoder.in(first, kU32);
  std::size_t next = first + 1;
  const std::size_t last = decoder.operands() - (mode >= Mode::kRedPopc ? 1 : 0);
  if (next < last) inst.b = decoder.in(next, kU32);
  if (mode == Mode::kArrive && inst.b == kNoSlot) decoder.malformed("arrive needs a thread count");
  if (mode >= Mode::kRedPopc) {
    inst.c = decoder.predicate_in(decoder.operand(last), &inst.small[1]);
    inst.d =
        mode == Mode::kRedPopc ? decoder.out(0, kU32) : decoder.predicate_out(decoder.operand(0));
  }
  decoder.handler(barrier<false>, barrier<true>);
}

}  // namespace annulus::sim
