// Barriers of a CTA and of a warp (PTX ISA 9.0, sections 9.7.13.1 and 9.7.13.2).

#include "simulator/ops/barrier.h"

#include <bit>

#include "simulator/machine/cluster.h"
#include "simulator/ops/cluster.h"
#include "simulator/ops/handlers.h"

namespace annulus::simulator {
namespace {

enum class Mode : std::uint8_t { kSync, kArrive, kRedPopc, kRedAnd, kRedOr };

// Writes the result of a reduction into the destination registers of the lanes that waited.
void give_results(Cta& cta, const NamedBarrier& barrier) {
  for (const NamedBarrier::Waiter& waiter : barrier.waiters) {
    const Inst& inst = cta.program->code[waiter.inst];
    const auto mode = static_cast<Mode>(inst.small[0]);
    if (mode != Mode::kRedPopc && mode != Mode::kRedAnd && mode != Mode::kRedOr) continue;
    std::byte* registers = cta.warps[static_cast<std::size_t>(waiter.warp)].registers;
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

bool barrier_complete(const Cta& cta, const NamedBarrier& barrier) {
  if (barrier.expected != 0) return barrier.arrived >= barrier.expected;
  std::uint32_t live = 0;
  for (const Warp& warp : cta.warps) live += warp.live != 0 ? kLanes : 0;
  return barrier.arrived >= live;
}

void complete_barrier(Cta& cta, NamedBarrier& barrier) {
  give_results(cta, barrier);
  for (const NamedBarrier::Waiter& waiter : barrier.waiters) {
    Warp& warp = cta.warps[static_cast<std::size_t>(waiter.warp)];
    if (cta.checked) {
      cta.cluster->clocks.acquire(barrier.times, warp.agent);
    }
    GlobalView& global = cta.global;
    if (global.order != nullptr) global.order->leave(global.clocks, warp.index, barrier.order);
    for (Group& group : warp.groups) {
      if (group.state == GroupState::kWaiting && group.pc == waiter.inst &&
          group.mask == waiter.mask) {
        group.state = GroupState::kRunning;
        ++group.pc;
      }
    }
  }
  barrier = NamedBarrier{};
  ++cta.cluster->events;
}

namespace {

// The barrier that lanes name, and the number of threads (0: all of the CTA).
struct Named {
  std::uint32_t id;
  std::uint32_t count;
};

Named take_operands(const Warp& warp, const Inst& inst, Mask mask) {
  const int lane = lowest_lane(mask);
  const std::uint32_t id = warp.lanes<std::uint32_t>(inst.a)[lane];
  const std::uint32_t count = inst.b == kNoSlot ? 0 : warp.lanes<std::uint32_t>(inst.b)[lane];
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int other = lowest_lane(rest);
    if (warp.lanes<std::uint32_t>(inst.a)[other] != id) {
      raise_at(FaultKind::kInvalidOperand, other, "lanes of a warp name different barriers");
    }
  }
  if (id >= kNamedBarriers) {
    raise_at(FaultKind::kInvalidOperand, lane,
             "barrier {} does not exist; a CTA has barriers 0 to 15", id);
  }
  if (inst.b != kNoSlot && (count == 0 || count % kLanes != 0)) {
    raise_at(FaultKind::kInvalidOperand, lane,
             "barrier {} for {} threads: the count has to be a positive multiple of 32", id, count);
  }
  const std::uint32_t most = warp.cta->warp_count() * kLanes;
  if (count > most) {
    raise_at(FaultKind::kInvalidOperand, lane, "barrier {} for {} threads, but the CTA has {}", id,
             count, most);
  }
  return {id, count};
}

NamedBarrier& open_barrier(Cta& cta, Named named, int lane) {
  NamedBarrier& place = cta.barriers[named.id];
  if (!place.open) {
    place = NamedBarrier{};
    place.open = true;
    place.expected = named.count;
  } else if (place.expected != named.count) {
    raise_at(FaultKind::kBarrierMisuse, lane,
             "barrier {} waits for {} threads, but this warp names {}", named.id, place.expected,
             named.count);
  }
  return place;
}

// The number of threads for which the lanes of `mask` arrive. A partial warp counts as a whole one.
// Lanes of a diverged warp (barrier without .aligned) count one by one. Lanes that have no thread
// or have exited count with the first of them.
std::uint32_t arriving(const Warp& warp, const NamedBarrier& place, Named named, Mask mask) {
  const auto threads = static_cast<std::uint32_t>(std::popcount(mask));
  const std::uint32_t bit = 1u << warp.index;
  if ((place.warps & bit) == 0) {
    return threads + kLanes - static_cast<std::uint32_t>(std::popcount(warp.live));
  }
  if (mask != warp.live) return threads;
  // In FlashAttention-3 the same warps arrive at a barrier and then wait at it. So with
  // `reading=proven` such arrivals count.
  if (warp.cta->strict) {
    raise_at(FaultKind::kBarrierMisuse, lowest_lane(mask),
             "the warp arrives at barrier {} again before it has completed", named.id);
  }
  return kLanes;
}

template <bool kChecked>
void arrive_at(Warp& warp, NamedBarrier& place, Named named, Mask mask) {
  Cta& cta = *warp.cta;
  const std::uint32_t threads = arriving(warp, place, named, mask);
  place.warps |= 1u << warp.index;
  if (kChecked) {
    cta.block_shadow.settle(warp.index);
    cta.cluster->clocks.release(place.times, warp.agent, mask | ~warp.live, mask == warp.live);
  }
  if (kChecked && cta.global.order != nullptr) {
    cta.global.order->arrive(cta.global.clocks, warp.index, place.order);
  }
  place.arrived += threads;
  if (named.count != 0 && place.arrived > named.count) {
    raise_at(FaultKind::kBarrierMisuse, lowest_lane(mask),
             "{} threads arrive at barrier {}, which is for {}", place.arrived, named.id,
             named.count);
  }
}

// The Inst: a the barrier's id, b the number of threads or kNoSlot, c the predicate of a reduction.
template <bool kChecked>
void barrier(Warp& warp, const Inst& inst, Mask mask) {
  Cta& cta = *warp.cta;
  const Named named = take_operands(warp, inst, mask);
  const auto mode = static_cast<Mode>(inst.small[0]);
  NamedBarrier& place = open_barrier(cta, named, lowest_lane(mask));
  arrive_at<kChecked>(warp, place, named, mask);
  if (mode >= Mode::kRedPopc) {
    const Mask values = warp.predicate(inst.c, inst.small[1]);
    place.predicate_count += static_cast<std::uint32_t>(std::popcount(values & mask));
    place.predicate_and &= (values & mask) == mask;
    place.predicate_or |= (values & mask) != 0;
  }
  if (mode != Mode::kArrive) place.waiters.push_back({warp.index, warp.pc, mask});
  if (!barrier_complete(cta, place)) {
    warp.pause.blocked = mode != Mode::kArrive;
    return;
  }
  // The running group has not begun to wait, so it continues.
  complete_barrier(cta, place);
}

// bar.warp.sync: the lanes have converged already, and their memory accesses become ordered. If
// only a part of the warp synchronises, the accesses of the other lanes count as ordered too. So a
// race between two halves that synchronise separately may be missed, but no correct exchange within
// a half is reported as a race.
template <bool kChecked>
void warp_sync(Warp& warp, const Inst&, Mask) {
  if (kChecked) warp.cta->shadow.tick(warp.index);
}

}  // namespace

void decode_bar(Decoder& decoder) {
  Inst& inst = decoder.inst();
  inst.kind = Class::kBarrier;
  if (decoder.has("cluster")) return decode_cluster_barrier(decoder);
  if (decoder.has("warp")) {
    inst.convergence = Convergence::kMembers;
    inst.members = decoder.in(0, kU32);
    return decoder.handler(warp_sync<false>, warp_sync<true>);
  }
  inst.flow = Flow::kBarrier;
  // bar is the same as barrier.aligned, which the whole warp executes. barrier without .aligned
  // counts lanes.
  if (decoder.source().opcode == "bar" || decoder.has("aligned"))
    inst.convergence = Convergence::kWarp;
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

}  // namespace annulus::simulator
