// Clusters (PTX ISA 9.0, sections 9.7.9.22, 9.7.9.23 and 9.7.13.3): addresses in the shared memory
// of other CTAs, loads and stores there, and the barrier of the cluster.

#include "simulator/machine/cluster.h"

#include <cstring>

#include "simulator/ops/access.h"
#include "simulator/ops/cluster.h"
#include "simulator/ops/handlers.h"
#include "simulator/ops/shared_address.h"

namespace annulus::simulator {
namespace {

constexpr std::uint64_t kOffsetMask = (std::uint64_t{1} << kRankShift) - 1;

template <typename T>
void map_address(Warp& warp, const Inst& inst, Mask mask) {
  Cta& cta = *warp.cta;
  const T* addresses = warp.lanes<T>(inst.a);
  const auto* ranks = warp.lanes<std::uint32_t>(inst.b);
  T* d = warp.lanes<T>(inst.d);
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    if (ranks[lane] >= cta.cluster->ctas.size()) {
      raise_at(FaultKind::kInvalidOperand, lane, "CTA {} does not exist in a cluster of {} CTAs",
               ranks[lane], cta.cluster->ctas.size());
    }
    const std::uint64_t rank = std::uint64_t{ranks[lane] + 1} << kRankShift;
    d[lane] = static_cast<T>((sizeof(T) == 8 ? kSharedWindow : 0) | rank |
                             (static_cast<std::uint64_t>(addresses[lane]) & kOffsetMask));
  }
}

template <typename T>
void rank_of(Warp& warp, const Inst& inst, Mask mask) {
  const T* addresses = warp.lanes<T>(inst.a);
  auto* d = warp.lanes<std::uint32_t>(inst.d);
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    d[lane] = cluster_place(warp, static_cast<std::uint32_t>(addresses[lane]), lane).cta->rank;
  }
}

// --- barrier.cluster ---
// The Inst: small[0] means relaxed.

void arrive_at_cluster(Warp& warp, const Inst& inst, Mask mask) {
  Cta& cta = *warp.cta;
  if ((warp.cluster_unwaited & mask) != 0) {
    raise(FaultKind::kBarrierMisuse,
          "barrier.cluster.arrive by a thread that has not waited for its last arrival",
          lowest_lane(warp.cluster_unwaited & mask));
  }
  // A relaxed arrival orders the end of accesses, but it makes nothing visible that was written.
  if (cta.checked) {
    Arrivals& barrier = cta.cluster->barrier;
    inst.small[0] == 0 ? barrier.release(warp, mask) : barrier.release_ended(warp, mask);
  }
  warp.cluster_arrived |= mask;
  warp.cluster_unwaited |= mask;
  complete_cluster_barrier(*cta.cluster);
}

void wait(Warp& warp, const Inst&, Mask mask) {
  Cta& cta = *warp.cta;
  if ((mask & ~warp.cluster_unwaited) != 0) {
    raise(FaultKind::kBarrierMisuse, "barrier.cluster.wait by a thread that has not arrived",
          lowest_lane(mask & ~warp.cluster_unwaited));
  }
  if ((warp.cluster_arrived & mask) != 0) return warp.suspend({Wait::kCluster, 0});
  warp.cluster_unwaited &= ~mask;
  if (cta.checked) cta.cluster->barrier.acquire(warp);
}

}  // namespace

void decode_cluster_barrier(Decoder& decoder) {
  Inst& inst = decoder.inst();
  inst.kind = Class::kBarrier;
  if (decoder.has("aligned")) inst.convergence = Convergence::kWarp;
  inst.flow = Flow::kBarrier;
  inst.small[0] = decoder.has("relaxed");
  decoder.program().orders_blocks = true;
  if (decoder.has("arrive")) return decoder.handler(arrive_at_cluster);
  if (!decoder.has("wait")) decoder.unsupported();
  decoder.handler(wait);
}

void decode_mapa(Decoder& decoder) {
  Inst& inst = decoder.inst();
  inst.kind = Class::kInteger;
  const Type type = decoder.type();
  inst.a = decoder.in(1, type);
  inst.b = decoder.in(2, kU32);
  inst.d = decoder.out(0, type);
  decoder.handler(type.bits == 64 ? map_address<std::uint64_t> : map_address<std::uint32_t>);
}

void decode_getctarank(Decoder& decoder) {
  Inst& inst = decoder.inst();
  inst.kind = Class::kInteger;
  const Type type = decoder.type();
  inst.a = decoder.in(1, type);
  inst.d = decoder.out(0, kU32);
  decoder.handler(type.bits == 64 ? rank_of<std::uint64_t> : rank_of<std::uint32_t>);
}

// ld.shared::cluster and st.shared::cluster, one lane after another. An address in the CTA's own
// shared memory is an ordinary access in its shadow. For any other address, the shadow of the other
// CTA records an access by a foreign warp, and that CTA must exist before and after the access
// (note_remote).
template <bool kStore>
static void check_access(Warp& warp, const SharedPlace& place, std::uint32_t bytes, int lane) {
  Cta& cta = *place.cta;
  if (&cta != warp.cta) {
    const std::uint32_t record = record_remote(warp, cta, lane);
    kStore ? cta.shadow.remote_write(warp.agent, lane, place.offset, bytes, record)
           : cta.shadow.remote_read(warp.agent, lane, place.offset, bytes, record);
  } else if (kStore) {
    cta.shadow.write(warp.index, lane, place.offset, bytes, true);
  } else {
    cta.shadow.read(warp.index, lane, place.offset, bytes);
  }
}

// The Inst, as in memory.cc: a the base, imm the offset, aux the first of small[2] value slots,
// small[0] the base has 64 bits, small[1] the bytes of an element, small[3] the bits of a value
// register, small[4] sign-extend.
template <bool kStore>
void access_cluster(Warp& warp, const Inst& inst, Mask mask) {
  const std::uint32_t element = inst.small[1];
  const std::uint32_t bytes = element * inst.small[2];
  const std::uint32_t register_bytes = inst.small[3] / 8u;
  LaneAddresses addresses;
  lane_addresses(warp, inst.a, inst.small[0] != 0, inst.imm, addresses);
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    const auto address = static_cast<std::uint32_t>(addresses[static_cast<std::size_t>(lane)]);
    const SharedPlace place = cluster_bytes(warp, address, bytes, lane);
    if (warp.cta->checked) check_access<kStore>(warp, place, bytes, lane);
    std::byte* at = place.cta->shared.data() + place.offset;
    for (std::uint32_t i = 0; i < inst.small[2]; ++i, at += element) {
      std::byte* value = warp.registers + warp.cta->program->slots[inst.aux + i] +
                         static_cast<std::uint32_t>(lane) * register_bytes;
      if (kStore) {
        std::memcpy(at, value, element);
        continue;
      }
      std::memcpy(value, at, element);
      const bool negative = inst.small[4] != 0 && (static_cast<int>(at[element - 1]) & 0x80) != 0;
      std::memset(value + element, negative ? 0xff : 0, register_bytes - element);
    }
  }
}

template void access_cluster<false>(Warp&, const Inst&, Mask);
template void access_cluster<true>(Warp&, const Inst&, Mask);

void decode_cluster_access(Decoder& decoder, bool store) {
  Inst& inst = decoder.inst();
  inst.kind = store ? Class::kSharedStore : Class::kSharedLoad;
  if (store) {
    decoder.handler(access_cluster<true>);
  } else {
    decoder.handler(access_cluster<false>);
  }
}

}  // namespace annulus::simulator
