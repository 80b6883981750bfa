// Mbarriers (PTX ISA 9.0, section 9.7.13.15). See sim/mbarriers.h for what they do.
//
// Scopes: mbarrier.arrive (9.7.13.15.13), test_wait and try_wait (9.7.13.15.16) have .release and
// .acquire at .cta where they say nothing, whichever CTA's shared memory the mbarrier is in. An
// arrival and a wait synchronise where the scope of each includes the thread of the other (8.7
// "Morally strong operations", 8.9.4 "Memory synchronization"): between CTAs that takes .cluster on
// both sides. The complete-tx of a bulk copy has .release at .cluster by itself (9.7.9.25.4.1), and
// waits of both scopes know what it has written, by a multicast too: no text tells whose thread the
// complete-tx counts as.
//
// The opaque state that an arrival returns:
//   | 63 : phase : 32 | 31 : arrivals missing before it : 32 |

#include "sim/mbarriers.h"

#include "sim/cluster.h"
#include "sim/ops/numbers.h"
#include "sim/ops/shared_address.h"

namespace annulus::sim {
namespace {

constexpr Type kU64{Type::kUnsigned, 64};

// small[] of these instructions.
enum : std::uint8_t {
  kWide = 0,   // the address has 64 bits
  kWhere = 1,  // ShareSpace
  kFlags = 2,  // below
};
enum : std::uint8_t {
  kDrop = 1,        // arrive_drop
  kNoComplete = 2,  // .noComplete
  kExpect = 4,      // .expect_tx; the count is in bytes
  kRelaxed = 8,
  kParity = 16,
  kTry = 32,      // try_wait, which may wait
  kCluster = 64,  // .cluster scope, not .cta
};

SharedPlace place_of(const Context& context, const Inst& inst, int lane) {
  return shared_place(context, inst.a, inst.small[kWide] != 0, inst.imm,
                      static_cast<ShareSpace>(inst.small[kWhere]), lane);
}

template <typename Visit>
void each_place(Context& context, const Inst& inst, Mask mask, Visit visit) {
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    const SharedPlace place = place_of(context, inst, lane);
    visit(*place.cta, place.offset, lane);
  }
}

// What makes memory an mbarrier, or memory again, is of the CTA itself.
void require_own(const Context& context, const Context& cta, int lane) {
  if (&cta == &context) return;
  raise_at(FaultKind::kInvalidOperand, lane, "an mbarrier of another CTA");
}

void init(Context& context, const Inst& inst, Mask mask) {
  const auto* counts = context.lanes<std::uint32_t>(inst.b);
  each_place(context, inst, mask, [&](Context& cta, std::uint32_t offset, int lane) {
    require_own(context, cta, lane);
    cta.mbarriers.init(cta, offset, counts[lane], lane);
  });
}

void invalidate(Context& context, const Inst& inst, Mask mask) {
  each_place(context, inst, mask, [&](Context& cta, std::uint32_t offset, int lane) {
    require_own(context, cta, lane);
    cta.mbarriers.invalidate(cta, offset, lane);
  });
}

// Another CTA's mbarrier, for an operation that the CTA has to outlive.
Mbarrier& use(Context& context, Context& cta, std::uint32_t offset, int lane) {
  if (&cta != &context) note_remote(context, cta, lane);
  return cta.mbarriers.use(cta, context, offset, lane, false);
}

void change_bytes(Context& context, const Inst& inst, Mask mask) {
  const auto* bytes = context.lanes<std::uint32_t>(inst.b);
  each_place(context, inst, mask, [&](Context& cta, std::uint32_t offset, int lane) {
    Mbarrier& mbarrier = use(context, cta, offset, lane);
    if ((inst.small[kFlags] & kExpect) != 0) {
      cta.mbarriers.expect(cta, mbarrier, bytes[lane], lane);
    } else {
      cta.mbarriers.complete(cta, mbarrier, bytes[lane], lane);
    }
  });
}

// b count or bytes, or kNoSlot; d the state, or kNoSlot.
void arrive(Context& context, const Inst& inst, Mask mask) {
  const std::uint8_t flags = inst.small[kFlags];
  const Mbarrier* released = nullptr;
  std::uint32_t phase = 0;
  each_place(context, inst, mask, [&](Context& cta, std::uint32_t offset, int lane) {
    Mbarrier& mbarrier = use(context, cta, offset, lane);
    const std::uint32_t operand =
        inst.b == kNoSlot ? 1 : context.lanes<std::uint32_t>(inst.b)[lane];
    // Lanes that arrive together release together; what one of them alone releases is its own.
    const bool fresh = &mbarrier != released || mbarrier.phase != phase;
    const bool far = &cta != &context;
    const bool releases = (flags & kRelaxed) == 0 && (!far || (flags & kCluster) != 0);
    if (fresh && context.checked && releases) {
      (far ? mbarrier.far : mbarrier.near).release(context, mask);
      released = &mbarrier;
      phase = mbarrier.phase;
    }
    const std::uint64_t state = (std::uint64_t{mbarrier.phase} << 32) | mbarrier.pending;
    if ((flags & kExpect) != 0) cta.mbarriers.expect(cta, mbarrier, operand, lane);
    cta.mbarriers.arrive(cta, mbarrier, (flags & kExpect) != 0 ? 1 : operand, (flags & kDrop) != 0,
                         (flags & kNoComplete) == 0, lane);
    if (inst.d != kNoSlot) context.lanes<std::uint64_t>(inst.d)[lane] = state;
  });
}

void pending_count(Context& context, const Inst& inst, Mask mask) {
  each_lane(
      mask, context.lanes<std::uint32_t>(inst.d),
      [](std::uint64_t state) { return static_cast<std::uint32_t>(state); },
      context.lanes<std::uint64_t>(inst.a));
}

// Whether the phase that the lane asks about is over: that with a parity, or that of a state.
bool is_over(const Context& context, const Inst& inst, const Mbarrier& mbarrier, int lane) {
  if ((inst.small[kFlags] & kParity) != 0) {
    const std::uint32_t parity = context.lanes<std::uint32_t>(inst.b)[lane];
    if (parity > 1) {
      raise_at(FaultKind::kInvalidOperand, lane, "phase parity {}; it is 0 or 1", parity);
    }
    return (mbarrier.phase & 1) != parity;
  }
  const std::uint64_t state = context.lanes<std::uint64_t>(inst.b)[lane];
  const auto phase = static_cast<std::uint32_t>(state >> 32);
  if (phase == mbarrier.phase) return false;
  if (phase + 1 != mbarrier.phase) {
    raise_at(FaultKind::kBarrierMisuse, lane,
             "a state of phase {} is neither of the current nor of the preceding phase of {}",
             phase, Mbarriers::describe(mbarrier));
  }
  return true;
}

// test_wait and try_wait. A wait that may suspend does so when every lane would have to, but now
// and then it gives up, as it may at any time.
void test(Context& context, const Inst& inst, Mask mask) {
  const std::uint8_t flags = inst.small[kFlags];
  const int highest = 31 - __builtin_clz(mask);
  Mask over = 0;
  Mbarrier* last = nullptr;  // of the lane before
  bool same = true;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    const SharedPlace place = place_of(context, inst, lane);
    require_own(context, *place.cta, lane);
    const bool again = last != nullptr && last->offset == place.offset;
    same &= last == nullptr || again;
    if (!again || lane == highest) {
      last = &context.mbarriers.use(context, context, place.offset, lane, false);
    }
    if (!is_over(context, inst, *last, lane)) continue;
    if (context.checked && (flags & kRelaxed) == 0 && (!again || over == 0)) {
      last->near.acquire(context);
      if ((flags & kCluster) != 0) last->far.acquire(context);
    }
    over |= 1u << lane;
    last->observed = last->phase;
  }
  if ((flags & kTry) != 0 && over == 0 && same && (context.dice.next() & 7) != 0) {
    return context.suspend({Wait::kMbarrier, last->offset, last->phase});
  }
  if (over != mask) {
    context.yield = true;
    Cluster& cluster = *context.cluster;
    if (cluster.events != cluster.polled_events) cluster.polls = 0;
    cluster.polled_events = cluster.events;
    ++cluster.polls;
  }
  context.set_predicate(inst.d, over, mask);
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
    if (decoder.has("shared::cluster")) decoder.malformed("there is no state of another CTA");
    inst.d = decoder.out(0, kU64);
  }
  decoder.handler(arrive);
}

void decode_wait(Decoder& decoder) {
  Inst& inst = decoder.inst();
  if (decoder.has("shared::cluster")) decoder.malformed("another CTA's cannot be waited for");
  take_address(decoder, 1);
  std::uint8_t flags = decoder.has("try_wait") ? kTry : 0;
  if (decoder.has("parity")) flags |= kParity;
  if (decoder.has("relaxed")) flags |= kRelaxed;
  if (decoder.has("cluster")) flags |= kCluster;
  inst.small[kFlags] = flags;
  inst.b = decoder.in(2, decoder.has("parity") ? kU32 : kU64);
  if (decoder.operands() > 3) {
    if ((flags & kTry) == 0) decoder.malformed("only try_wait takes a time");
    decoder.in(3, kU32);  // how long it may suspend: any time will do
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

}  // namespace annulus::sim
