// Atomics on vectors and on single 16-bit floats (PTX ISA 9.0, sections 9.7.13.5 and 9.7.13.6: .v2
// to .v8 of f32, f16, bf16 and their packed pairs). Each element is a separate atomic; the vector
// as a whole is not a single access.

#include <atomic>
#include <bit>
#include <cstring>
#include <type_traits>

#include "simulator/machine/cluster.h"
#include "simulator/ops/access.h"
#include "simulator/ops/atomic_vector.h"
#include "simulator/ops/handlers.h"

namespace annulus::simulator {
namespace {

enum class Combine : std::uint8_t { kAdd, kMin, kMax };

// The Inst: a the base slot, imm the offset, aux the first of small[4] operand slots, which the
// same number of destination slots follow if there is a destination; small[0] the base has 64 bits,
// small[1] Combine, small[2] whether there is a destination, small[3] whether the address may be in
// shared memory.

template <typename E>
E combine(Combine how, E old, E value) {
  if constexpr (std::is_same_v<E, float>) {
    return add_flushed(old, value);  // the only operation on vectors of fp32
  } else {
    const float a = widen(old);
    const float b = widen(value);
    const float result = how == Combine::kAdd   ? a + b
                         : how == Combine::kMin ? min_number(a, b)
                                                : max_number(a, b);
    return result != result ? E{0x7fff} : narrow<E>(result);
  }
}

// Combines one element and returns its former value.
template <typename E, typename Bits>
Bits update(std::byte* place, Combine how, Bits value, std::uint64_t* changes) {
  std::atomic_ref<Bits> cell(*reinterpret_cast<Bits*>(place));
  Bits old = cell.load(std::memory_order_relaxed);
  Bits fresh;
  do {
    fresh = std::bit_cast<Bits>(combine(how, std::bit_cast<E>(old), std::bit_cast<E>(value)));
  } while (!cell.compare_exchange_weak(old, fresh));
  *changes += fresh != old;
  return old;
}

// The place of the lane's vector.
template <bool kChecked>
std::byte* reach(Warp& warp, const Inst& inst, int lane, const LaneAddresses& addresses,
                 std::uint32_t bytes, AccessKind access) {
  Cta& cta = *warp.cta;
  LanePointers pointers;
  const std::uint64_t address = addresses[static_cast<std::size_t>(lane)];
  if (inst.small[3] == 2 || (inst.small[3] == 1 && address - kSharedWindow < kWindowBytes)) {
    reach_shared<false>(warp, 1u << lane, addresses, bytes, pointers);
    std::byte* place = pointers[static_cast<std::size_t>(lane)];
    if (kChecked) {
      cta.shadow.atomic(warp.agent, lane, shared_offset(cta, place), bytes, inst.small[2] != 0);
      if (cta.global.order != nullptr)
        cta.global.order->shared_atomic(cta.global.clocks, warp.index);
    }
    return place;
  }
  reach_global<kChecked>(warp, 1u << lane, addresses, bytes, Access::kUpdate, access, pointers);
  if (kChecked) {
    update_in_block(warp, lane, addresses, bytes, inst.order, inst.small[2] != 0);
  }
  return pointers[static_cast<std::size_t>(lane)];
}

// E is the type of an element, R the type of a register with one or two of them.
template <typename E, typename R, bool kChecked>
void atomic_vector(Warp& warp, const Inst& inst, Mask mask) {
  using Bits = std::conditional_t<sizeof(E) == 2, std::uint16_t, std::uint32_t>;
  constexpr std::size_t kPacked = sizeof(R) / sizeof(E);
  Cta& cta = *warp.cta;
  LaneAddresses addresses;
  lane_addresses(warp, inst.a, inst.small[0], inst.imm, addresses);
  const auto how = static_cast<Combine>(inst.small[1]);
  const bool returns = inst.small[2] != 0;
  const std::uint32_t count = inst.small[4];
  const auto bytes = static_cast<std::uint32_t>(count * sizeof(R));
  const AccessKind access =
      strong_for_device(inst.order) ? AccessKind::kStrongWrite : AccessKind::kWrite;
  const auto slot = [&](std::uint32_t index) { return cta.program->slots[inst.aux + index]; };
  R results[kLanes][8] = {};
  const StrongScope<kChecked> scope(warp, inst.order);
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    std::byte* place = reach<kChecked>(warp, inst, lane, addresses, bytes, access);
    std::uint64_t changes = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      Bits values[kPacked];
      std::memcpy(values, &warp.lanes<R>(slot(i))[lane], sizeof(R));
      for (Bits& value : values) {
        value = update<E>(place, how, value, &changes);
        place += sizeof(E);
      }
      std::memcpy(&results[lane][i], values, sizeof(R));
    }
    cta.changes += changes;
    if (returns) scope.acquire(1u << lane, addresses);
    scope.release(1u << lane, addresses, true);
  }
  if (kChecked) cta.cluster->clocks.advance(warp.agent);
  for (std::uint32_t i = 0; returns && i < count; ++i) {
    R* to = warp.lanes<R>(slot(count + i));
    for (Mask rest = mask; rest != 0; rest &= rest - 1) {
      const int lane = lowest_lane(rest);
      to[lane] = results[lane][i];
    }
  }
}

template <typename E, typename R>
void set_handler(Decoder& decoder) {
  decoder.handler(atomic_vector<E, R, false>, atomic_vector<E, R, true>);
}

void set_handler(Decoder& decoder, const Type& type) {
  if (type.bits == 32) return set_handler<float, std::uint32_t>(decoder);
  if (type.kind == Type::kBrain) {
    return type.count == 2 ? set_handler<Brain, std::uint32_t>(decoder)
                           : set_handler<Brain, std::uint16_t>(decoder);
  }
  return type.count == 2 ? set_handler<Half, std::uint32_t>(decoder)
                         : set_handler<Half, std::uint16_t>(decoder);
}

std::size_t vector_length(const Decoder& decoder) {
  return decoder.has("v2") ? 2 : decoder.has("v4") ? 4 : decoder.has("v8") ? 8 : 1;
}

// Whether the ISA has this operation on vectors of this length.
bool exists(const Decoder& decoder, const Type& type, std::size_t length, Combine how) {
  const bool floating = type.kind == Type::kFloat || type.kind == Type::kBrain;
  if (!floating || type.bits > 32) return false;
  if (type.bits == 32) return how == Combine::kAdd && type.count == 1 && length <= 4;
  if (!decoder.has("noftz")) return false;
  if (length == 1) return how == Combine::kAdd && type.count == 1;
  return length <= (type.count == 2 ? 4u : 8u);
}

std::vector<ptx::Operand> elements(const ptx::Operand& operand) {
  if (operand.kind == ptx::OperandKind::kVector) return operand.elements;
  return {operand};
}

}  // namespace

bool is_atomic_vector(const Decoder& decoder) {
  const Type type = decoder.type();
  const bool half = type.bits == 16 && type.count == 1 &&
                    (type.kind == Type::kFloat || type.kind == Type::kBrain);
  return vector_length(decoder) != 1 || half;
}

void decode_atomic_vector(Decoder& decoder, bool returns) {
  Inst& inst = decoder.inst();
  const Type type = decoder.type();
  const std::size_t length = vector_length(decoder);
  const bool shared = decoder.has("shared") || decoder.has("shared::cta");
  const Combine how = decoder.has("min")   ? Combine::kMin
                      : decoder.has("max") ? Combine::kMax
                                           : Combine::kAdd;
  const bool named = decoder.has("add") || how != Combine::kAdd;
  if (!named || !exists(decoder, type, length, how)) decoder.unsupported();
  if (shared && length != 1) decoder.malformed("atomics on vectors exist only for global memory");
  const std::size_t first = returns ? 1 : 0;
  const std::vector<ptx::Operand> values = elements(decoder.operand(first + 1));
  const std::vector<ptx::Operand> results =
      returns ? elements(decoder.operand(0)) : std::vector<ptx::Operand>();
  if (values.size() != length || (returns && results.size() != length)) {
    decoder.malformed("the vector has the wrong number of elements");
  }
  inst.kind = Class::kAtomic;
  inst.order = decoder.memory_order(true);
  const Decoder::Address address = decoder.address(decoder.operand(first));
  inst.a = address.base;
  inst.imm = address.offset;
  inst.small[0] = address.base_bits == 64;
  inst.small[1] = static_cast<std::uint8_t>(how);
  inst.small[2] = returns;
  inst.small[3] = shared ? 2 : decoder.has("global") || length != 1 ? 0 : 1;
  inst.small[4] = static_cast<std::uint8_t>(length);
  std::vector<std::uint32_t> slots;
  for (const ptx::Operand& value : values) slots.push_back(decoder.in(value, type));
  for (const ptx::Operand& result : results) slots.push_back(decoder.out(result, type));
  inst.aux = decoder.list(slots);
  set_handler(decoder, type);
}

}  // namespace annulus::simulator
