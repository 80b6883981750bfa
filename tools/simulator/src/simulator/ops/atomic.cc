// Atomics (PTX ISA 9.0, sections 9.7.13.5 and 9.7.13.6). On global memory they are atomic between
// the host threads that run CTAs. On shared memory they need no host atomics, because one host
// thread runs the whole CTA.

#include <atomic>
#include <cstring>

#include "simulator/ops/access.h"
#include "simulator/ops/atomic_vector.h"
#include "simulator/ops/handlers.h"
#include "simulator/ops/shared_address.h"

namespace annulus::simulator {
namespace {

enum class Operation : std::uint8_t { kAdd, kMin, kMax, kAnd, kOr, kXor, kExch, kCas, kInc, kDec };

// The Inst of an atomic: small[0] the base has 64 bits, small[1] Operation, small[2] Type::Kind,
// small[3] the space (0 generic, 1 global, 2 shared, 3 shared::cluster), small[4] packed pairs; b
// the operand, c the second operand of cas, d the destination or kNoSlot (red).
template <typename T>
T apply_integer(Operation operation, bool is_signed, T old, T b, T c) {
  using S = std::make_signed_t<T>;
  switch (operation) {
    case Operation::kAdd:
      return static_cast<T>(old + b);
    case Operation::kMin:
      return is_signed ? static_cast<T>(std::min(static_cast<S>(old), static_cast<S>(b)))
                       : std::min(old, b);
    case Operation::kMax:
      return is_signed ? static_cast<T>(std::max(static_cast<S>(old), static_cast<S>(b)))
                       : std::max(old, b);
    case Operation::kAnd:
      return old & b;
    case Operation::kOr:
      return old | b;
    case Operation::kXor:
      return old ^ b;
    case Operation::kExch:
      return b;
    case Operation::kCas:
      return old == b ? c : old;
    case Operation::kInc:
      return old >= b ? T{0} : static_cast<T>(old + 1);
    case Operation::kDec:
      return old == 0 || old > b ? b : static_cast<T>(old - 1);
  }
  return old;
}

// The sum of two pairs of f16x2 or bf16x2. Each half is rounded separately.
template <typename T2>
std::uint32_t add_pairs(std::uint32_t a, std::uint32_t b) {
  const T2 x = std::bit_cast<T2>(a);
  const T2 y = std::bit_cast<T2>(b);
  const auto add = [](auto u, auto v) {
    using H = decltype(u);
    const float sum = widen(u) + widen(v);
    return sum != sum ? H{0x7fff} : narrow<H>(sum);
  };
  return std::bit_cast<std::uint32_t>(T2{add(x.lo, y.lo), add(x.hi, y.hi)});
}

// Sums of fp32 flush subnormal numbers in global memory, but not in shared memory.
template <bool kGlobal, typename T>
T apply(Operation operation, Type::Kind kind, bool pairs, T old, T b, T c) {
  if constexpr (sizeof(T) == 4) {
    if (pairs) return kind == Type::kBrain ? add_pairs<Brain2>(old, b) : add_pairs<Half2>(old, b);
  }
  if ((kind == Type::kFloat || kind == Type::kBrain) && operation == Operation::kAdd) {
    if constexpr (sizeof(T) == 2) {
      return old;  // refused by the decoder
    } else if constexpr (sizeof(T) == 4) {
      const auto x = std::bit_cast<float>(old);
      const auto y = std::bit_cast<float>(b);
      return std::bit_cast<T>(kGlobal ? add_flushed(x, y) : canonical(x + y));
    } else {
      return std::bit_cast<T>(canonical(std::bit_cast<double>(old) + std::bit_cast<double>(b)));
    }
  }
  return apply_integer<T>(operation, kind == Type::kSigned, old, b, c);
}

// The place of a lane's atomic on shared memory, in this CTA or in another CTA that the address
// names. The place is passed to the search for races.
template <bool kChecked>
std::byte* reach_shared_atomic(Warp& warp, const Inst& inst, int lane,
                               const LaneAddresses& addresses, std::uint32_t bytes) {
  Cta& cta = *warp.cta;
  const std::uint64_t address = addresses[static_cast<std::size_t>(lane)];
  const bool learns = inst.d != kNoSlot;
  if (inst.small[3] != 2 && names_cta(address)) {
    const SharedPlace place = cluster_bytes(warp, static_cast<std::uint32_t>(address), bytes, lane);
    std::byte* at = place.cta->shared.data() + place.offset;
    if (kChecked && place.cta != &cta) note_remote(warp, *place.cta, lane);
    if (kChecked) place.cta->shadow.atomic(warp.agent, lane, place.offset, bytes, learns);
    return at;
  }
  // Unchecked, which only leaves out the count of wavefronts. Lanes are handled one by one here,
  // and each would count as an access of the whole warp. The shadow searches for races.
  LanePointers pointers;
  reach_shared<false>(warp, 1u << lane, addresses, bytes, pointers);
  std::byte* at = pointers[static_cast<std::size_t>(lane)];
  if (kChecked) cta.shadow.atomic(warp.agent, lane, shared_offset(cta, at), bytes, learns);
  return at;
}

// Lanes are executed one after another, in an order that the ISA leaves open. For other blocks, an
// atomic with a scope below the device (kBlock) is an ordinary write. An atomic takes what earlier
// strong writes published before it publishes its own knowledge. A red returns no value and takes
// nothing.
template <typename T, bool kChecked>
void atomic(Warp& warp, const Inst& inst, Mask mask) {
  Cta& cta = *warp.cta;
  LaneAddresses addresses;
  lane_addresses(warp, inst.a, inst.small[0], inst.imm, addresses);
  const auto operation = static_cast<Operation>(inst.small[1]);
  const auto kind = static_cast<Type::Kind>(inst.small[2]);
  const T* b = warp.lanes<T>(inst.b);
  const T* c = warp.lanes<T>(inst.c == kNoSlot ? inst.b : inst.c);
  T results[kLanes] = {};
  const AccessKind access =
      strong_for_device(inst.order) ? AccessKind::kStrongWrite : AccessKind::kWrite;
  const StrongScope<kChecked> scope(warp, inst.order);
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    const std::uint64_t address = addresses[static_cast<std::size_t>(lane)];
    const bool shared =
        inst.small[3] >= 2 || (inst.small[3] == 0 && address - kSharedWindow < kWindowBytes);
    LanePointers pointers;
    if (shared) {
      std::byte* place = reach_shared_atomic<kChecked>(warp, inst, lane, addresses, sizeof(T));
      if (kChecked && cta.global.order != nullptr) {
        cta.global.order->shared_atomic(cta.global.clocks, warp.index);
      }
      T old;
      std::memcpy(&old, place, sizeof(T));
      const T fresh = apply<false>(operation, kind, inst.small[4], old, b[lane], c[lane]);
      std::memcpy(place, &fresh, sizeof(T));
      cta.changes += fresh != old;
      results[lane] = old;
    } else {
      reach_global<kChecked>(warp, 1u << lane, addresses, sizeof(T), Access::kUpdate, access,
                             pointers);
      std::atomic_ref<T> place(*reinterpret_cast<T*>(pointers[static_cast<std::size_t>(lane)]));
      if (kChecked) {
        update_in_block(warp, lane, addresses, sizeof(T), inst.order, inst.d != kNoSlot);
      }
      T old = place.load(std::memory_order_relaxed);
      T fresh;
      do {
        fresh = apply<true>(operation, kind, inst.small[4], old, b[lane], c[lane]);
      } while (!place.compare_exchange_weak(old, fresh));
      cta.changes += fresh != old;
      results[lane] = old;
      if (inst.d != kNoSlot) scope.acquire(1u << lane, addresses, true);
      scope.release(1u << lane, addresses, true);
    }
  }
  if (kChecked) cta.cluster->clocks.advance(warp.agent);
  if (inst.d == kNoSlot) return;
  T* d = warp.lanes<T>(inst.d);
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    d[lane] = results[lane];
  }
}

// Supported are types of 32 and 64 bits, packed pairs for add, and 16 bits only for cas. `returns`
// means that there is a destination (atom, not red).
void decode_atomic(Decoder& decoder, bool returns) {
  Inst& inst = decoder.inst();
  if (is_atomic_vector(decoder)) return decode_atomic_vector(decoder, returns);
  const Type type = decoder.type();
  const bool pairs = type.count == 2 && decoder.has("add");
  const bool swap16 = type == Type{Type::kBits, 16} && decoder.has("cas");
  const bool plain = type.count == 1 && (type.bits == 32 || type.bits == 64);
  if (!(pairs || swap16 || plain)) decoder.unsupported();
  const std::pair<const char*, Operation> names[] = {
      {"add", Operation::kAdd},   {"min", Operation::kMin}, {"max", Operation::kMax},
      {"and", Operation::kAnd},   {"or", Operation::kOr},   {"xor", Operation::kXor},
      {"exch", Operation::kExch}, {"cas", Operation::kCas}, {"inc", Operation::kInc},
      {"dec", Operation::kDec}};
  bool found = false;
  for (const auto& [name, operation] : names) {
    if (!decoder.has(name)) continue;
    inst.small[1] = static_cast<std::uint8_t>(operation);
    found = true;
  }
  if (!found) decoder.unsupported("this operation is not modelled");
  if (type.kind == Type::kFloat && static_cast<Operation>(inst.small[1]) != Operation::kAdd) {
    decoder.unsupported();
  }
  inst.kind = Class::kAtomic;
  inst.order = decoder.memory_order(true);
  inst.small[2] = type.kind;
  inst.small[4] = pairs;
  const std::size_t first = returns ? 1 : 0;
  const Decoder::Address address = decoder.address(decoder.operand(first));
  inst.a = address.base;
  inst.imm = address.offset;
  inst.small[0] = address.base_bits == 64;
  inst.small[3] = decoder.has("shared::cluster")                        ? 3
                  : decoder.has("shared") || decoder.has("shared::cta") ? 2
                  : decoder.has("global")                               ? 1
                                                                        : 0;
  inst.b = decoder.in(first + 1, type);
  if (static_cast<Operation>(inst.small[1]) == Operation::kCas) {
    inst.c = decoder.in(first + 2, type);
  }
  if (returns) inst.d = decoder.out(0, type);
  if (swap16) {
    decoder.handler(atomic<std::uint16_t, false>, atomic<std::uint16_t, true>);
  } else if (type.bits == 32 || pairs) {
    decoder.handler(atomic<std::uint32_t, false>, atomic<std::uint32_t, true>);
  } else {
    decoder.handler(atomic<std::uint64_t, false>, atomic<std::uint64_t, true>);
  }
}

}  // namespace

void decode_atom(Decoder& decoder) { decode_atomic(decoder, true); }
void decode_red(Decoder& decoder) {
  if (decoder.has("async")) decoder.unsupported();
  decode_atomic(decoder, false);
}

}  // namespace annulus::simulator
