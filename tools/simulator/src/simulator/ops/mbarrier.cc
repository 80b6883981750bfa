// Mbarriers (PTX ISA 9.0, section 9.7.13.15). simulator/machine/mbarriers.h describes what they do.
//
// Scopes. Without a scope, mbarrier.arrive (9.7.13.15.13), test_wait and try_wait (9.7.13.15.16)
// have .release and .acquire at .cta, whichever CTA's shared memory the mbarrier is in. An arrival
// and a wait synchronise if the scope of each includes the thread of the other (8.7 "Morally strong
// operations", 8.9.4 "Memory synchronization"). Between CTAs, both sides need .cluster. The
// complete-tx of a bulk copy has .release at .cluster by itself (9.7.9.25.4.1). Here, waits of both
// scopes see what the copy has written, even if it is a multicast, because the manual does not
// state as which thread the complete-tx counts.
//
// Between CTAs, an arrival and a wait of .cta scope still have one effect. Accesses that had ended
// before the arrival (reads that have returned, products and copies that were waited for) have
// ended before an asynchronous write after the wait. Pipelines whose buffers are filled by bulk
// copies of several CTAs rely on that (CUTLASS's ClusterBarrier arrives and waits so). Nothing that
// was written becomes visible in this way, and no generic write may follow.
//
// The opaque state that an arrival returns:
//   | 63 : phase : 32 | 31 : arrivals missing before it : 32 |

#include "simulator/machine/mbarriers.h"

#include "simulator/machine/cluster.h"
#include "simulator/ops/handlers.h"
#include "simulator/ops/shared_address.h"

namespace annulus::simulator {
namespace {

constexpr Type kU64{Type::kUnsigned, 64};

// The meaning of small[] of these instructions.
enum : std::uint8_t {
  kWide = 0,   // the address has 64 bits
  kWhere = 1,  // ShareSpace
  kFlags = 2,  // a sum of the flags below
};
enum : std::uint8_t {
  kDrop = 1,        // arrive_drop
  kNoComplete = 2,  // .noComplete
  kExpect = 4,      // .expect_tx; the count is in bytes
  kRelaxed = 8,
  kParity = 16,
  kTry = 32,      // try_wait, which may suspend the thread
  kCluster = 64,  // .cluster scope, not .cta
};

SharedPlace place_of(const Warp& warp, const Inst& inst, int lane) {
  return shared_place(warp, inst.a, inst.small[kWide] != 0, inst.imm,
                      static_cast<ShareSpace>(inst.small[kWhere]), lane);
}

template <typename Visit>
void each_place(Warp& warp, const Inst& inst, Mask mask, Visit visit) {
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    const SharedPlace place = place_of(warp, inst, lane);
    visit(*place.cta, place.offset, lane);
  }
}

// Only the CTA itself may initialise, invalidate or wait for an mbarrier.
void require_own(const Warp& warp, const Cta& cta, int lane) {
  if (&cta == warp.cta) return;
  raise_at(FaultKind::kInvalidOperand, lane, "the mbarrier is in another CTA");
}

void init(Warp& warp, const Inst& inst, Mask mask) {
  const auto* counts = warp.lanes<std::uint32_t>(inst.b);
  each_place(warp, inst, mask, [&](Cta& cta, std::uint32_t offset, int lane) {
    require_own(warp, cta, lane);
    cta.mbarriers.init(warp, offset, counts[lane], lane);
  });
}

void invalidate(Warp& warp, const Inst& inst, Mask mask) {
  each_place(warp, inst, mask, [&](Cta& cta, std::uint32_t offset, int lane) {
    require_own(warp, cta, lane);
    cta.mbarriers.invalidate(warp, offset, lane);
  });
}

// The mbarrier, for an operation that another CTA may make too. The CTA of the mbarrier must not
// end before the operation.
Mbarrier& use(Warp& warp, Cta& cta, std::uint32_t offset, int lane) {
  if (&cta != warp.cta) note_remote(warp, cta, lane);
  return cta.mbarriers.use(cta, warp, offset, lane, false);
}

void change_bytes(Warp& warp, const Inst& inst, Mask mask) {
  const auto* bytes = warp.lanes<std::uint32_t>(inst.b);
  each_place(warp, inst, mask, [&](Cta& cta, std::uint32_t offset, int lane) {
    Mbarrier& mbarrier = use(warp, cta, offset, lane);
    if ((inst.small[kFlags] & kExpect) != 0) {
      cta.mbarriers.expect(cta, mbarrier, bytes[lane], lane);
    } else {
      cta.mbarriers.complete(cta, mbarrier, bytes[lane], lane);
    }
  });
}

// The Inst: b the count or the number of bytes, or kNoSlot; d the state, or kNoSlot. The lanes
// arrive one after another, and the arrival of a lane may end the phase.
void arrive(Warp& warp, const Inst& inst, Mask mask) {
  const std::uint8_t flags = inst.small[kFlags];
  const Mbarrier* released = nullptr;
  std::uint32_t phase = 0;
  each_place(warp, inst, mask, [&](Cta& cta, std::uint32_t offset, int lane) {
    Mbarrier& mbarrier = use(warp, cta, offset, lane);
    const std::uint32_t operand = inst.b == kNoSlot ? 1 : warp.lanes<std::uint32_t>(inst.b)[lane];
    // Lanes that arrive at the same mbarrier in the same phase release together, once.
    const bool fresh = &mbarrier != released || mbarrier.phase != phase;
    const bool far = &cta != warp.cta;
    if (fresh && warp.cta->checked && (flags & kRelaxed) == 0) {
      if (far && warp.cta->strict && (flags & kCluster) == 0) {
        mbarrier.far.release_ended(warp, mask);
      } else {
        (far ? mbarrier.far : mbarrier.near).release(warp, mask);
      }
      released = &mbarrier;
      phase = mbarrier.phase;
    }
    const std::uint64_t state = (std::uint64_t{mbarrier.phase} << 32) | mbarrier.pending;
    if ((flags & kExpect) != 0) cta.mbarriers.expect(cta, mbarrier, operand, lane);
    cta.mbarriers.arrive(cta, mbarrier, (flags & kExpect) != 0 ? 1 : operand, (flags & kDrop) != 0,
                         (flags & kNoComplete) == 0, lane);
    if (inst.d != kNoSlot) warp.lanes<std::uint64_t>(inst.d)[lane] = state;
  });
}

void pending_count(Warp& warp, const Inst& inst, Mask mask) {
  each_lane(
      mask, warp.lanes<std::uint32_t>(inst.d),
      [](std::uint64_t state) { return static_cast<std::uint32_t>(state); },
      warp.lanes<std::uint64_t>(inst.a));
}

// Whether the phase that the lane tests, by its parity or by a state, is over.
bool is_over(const Warp& warp, const Inst& inst, const Mbarrier& mbarrier, int lane) {
  if ((inst.small[kFlags] & kParity) != 0) {
    const std::uint32_t parity = warp.lanes<std::uint32_t>(inst.b)[lane];
    if (parity > 1) {
      raise_at(FaultKind::kInvalidOperand, lane, "phase parity {}; it has to be 0 or 1", parity);
    }
    return (mbarrier.phase & 1) != parity;
  }
  const std::uint64_t state = warp.lanes<std::uint64_t>(inst.b)[lane];
  const auto phase = static_cast<std::uint32_t>(state >> 32);
  if (phase == mbarrier.phase) return false;
  if (phase + 1 != mbarrier.phase) {
    raise_at(FaultKind::kBarrierMisuse, lane,
             "a state of phase {}, which is neither the current nor the preceding phase of {}",
             phase, Mbarriers::describe(mbarrier));
  }
  return true;
}

// test_wait and try_wait. A try_wait suspends if no lane's phase is over and all lanes test the
// same mbarrier. With a probability of one in eight it returns without success, as it may at any
// time. A test that fails ends the turn of the warp and is counted, so that a kernel which polls
// without end is found (run_cluster).
void test(Warp& warp, const Inst& inst, Mask mask) {
  const std::uint8_t flags = inst.small[kFlags];
  const int highest = 31 - __builtin_clz(mask);
  Mask over = 0;
  Mbarrier* last = nullptr;  // the mbarrier of the previous lane
  bool same = true;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    const SharedPlace place = place_of(warp, inst, lane);
    require_own(warp, *place.cta, lane);
    const bool again = last != nullptr && last->offset == place.offset;
    same &= last == nullptr || again;
    if (!again || lane == highest) {
      last = &warp.cta->mbarriers.use(*warp.cta, warp, place.offset, lane, false);
    }
    if (!is_over(warp, inst, *last, lane)) continue;
    if (warp.cta->checked && (flags & kRelaxed) == 0 && (!again || over == 0)) {
      last->near.acquire(warp);
      if (!warp.cta->strict || (flags & kCluster) != 0) {
        last->far.acquire(warp);
      } else {
        last->far.acquire_ended(warp);
      }
    }
    over |= 1u << lane;
    last->observed = last->phase;
    if (warp.cta->checked) warp.cta->flights.finish_loads(place.offset, last->clock());
  }
  if ((flags & kTry) != 0 && over == 0 && same && (warp.cta->random.next() & 7) != 0) {
    return warp.suspend({Wait::kMbarrier, last->offset, last->phase});
  }
  if (over != mask) {
    warp.pause.yield = true;
    Cluster& cluster = *warp.cta->cluster;
    cluster.count_poll();
    ++cluster.tests;
  }
  warp.set_predicate(inst.d, over, mask);
}

void take_address(Decoder& decoder, std::size_t index) {
  Inst& inst = decoder.inst();
  const Decoder::Address address = decoder.address(decoder.operand(index));
  inst.a = address.base;
  inst.imm = address.offset;
  inst.small[kWide] = address.base_bits == 64;
  inst.small[kWhere] = static_cast<std::uint8_t>(share_space(decoder, address));
}

void decode_arrive(Decoder& decoder) {
  Inst& inst = decoder.inst();
  take_address(decoder, 1);
  std::uint8_t flags = decoder.has("arrive_drop") ? kDrop : 0;
  if (decoder.has("noComplete")) flags |= kNoComplete;
  if (decoder.has("expect_tx")) flags |= kExpect;
  if (decoder.has("relaxed")) flags |= kRelaxed;
  if (decoder.has("cluster")) flags |= kCluster;
  inst.small[kFlags] = flags;
  const bool counted = decoder.operands() > 2;
  if (!counted && (flags & (kNoComplete | kExpect)) != 0) decoder.malformed("a count is needed");
  if (counted) inst.b = decoder.in(2, kU32);
  if (decoder.operand(0).kind != ptx::OperandKind::kSink) {
    if (decoder.has("shared::cluster"))
      decoder.malformed("an mbarrier of another CTA returns no state");
    inst.d = decoder.out(0, kU64);
  }
  decoder.handler(arrive);
}

void decode_wait(Decoder& decoder) {
  Inst& inst = decoder.inst();
  if (decoder.has("shared::cluster"))
    decoder.malformed("an mbarrier of another CTA cannot be waited for");
  take_address(decoder, 1);
  std::uint8_t flags = decoder.has("try_wait") ? kTry : 0;
  if (decoder.has("parity")) flags |= kParity;
  if (decoder.has("relaxed")) flags |= kRelaxed;
  if (decoder.has("cluster")) flags |= kCluster;
  inst.small[kFlags] = flags;
  inst.b = decoder.in(2, decoder.has("parity") ? kU32 : kU64);
  if (decoder.operands() > 3) {
    if ((flags & kTry) == 0) decoder.malformed("only try_wait has a suspend time");
    decoder.in(3, kU32);  // the suspend time, which has no effect here
  }
  inst.d = decoder.predicate_out(decoder.operand(0));
  inst.flow = Flow::kBarrier;
  decoder.handler(test);
}

}  // namespace

void decode_mbarrier(Decoder& decoder) {
  Inst& inst = decoder.inst();
  inst.kind = Class::kBarrier;
  if (!decoder.has("b64")) decoder.malformed("an mbarrier has 64 bits");
  if (decoder.has("test_wait") || decoder.has("try_wait")) return decode_wait(decoder);
  if (decoder.has("arrive") || decoder.has("arrive_drop")) return decode_arrive(decoder);
  if (decoder.has("pending_count")) {
    inst.a = decoder.in(1, kU64);
    inst.d = decoder.out(0, kU32);
    return decoder.handler(pending_count);
  }
  take_address(decoder, 0);
  if (decoder.has("inval")) return decoder.handler(invalidate);
  inst.b = decoder.in(1, kU32);
  if (decoder.has("init")) return decoder.handler(init);
  inst.small[kFlags] = decoder.has("expect_tx") ? kExpect : 0;
  if (!decoder.has("expect_tx") && !decoder.has("complete_tx")) decoder.unsupported();
  decoder.handler(change_bytes);
}

}  // namespace annulus::simulator
