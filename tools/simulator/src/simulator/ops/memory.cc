// Loads, stores and fences (PTX ISA 9.0, sections 9.7.9.8 to 9.7.9.19 and 9.7.13.4).

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "simulator/machine/cluster.h"
#include "simulator/ops/access.h"
#include "simulator/ops/bulk_copy.h"
#include "simulator/ops/cluster.h"
#include "simulator/ops/handlers.h"
#include "simulator/ops/shared_address.h"

namespace annulus::simulator {
namespace {

using ptx::Space;

// The Inst of a load or store: a the base slot, imm the offset, aux the first of small[2] value
// slots,
//   small[0] the base has 64 bits, small[1] the bytes of an element, small[2] the number of elements,
//   small[3] the bits of the value registers, small[4] sign-extend.

template <typename E, typename R, int kCount>
void scatter(const Warp& warp, const Inst& inst, Mask mask, const LanePointers& pointers) {
  R* to[kCount];
  for (int i = 0; i < kCount; ++i) {
    to[i] = warp.lanes<R>(warp.cta->program->slots[inst.aux + static_cast<std::uint32_t>(i)]);
  }
  // All lanes are read before any register is written: the base may be a destination.
  E values[kLanes][kCount];
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    std::memcpy(values[lane], pointers[static_cast<std::size_t>(lane)], sizeof(E) * kCount);
  }
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    for (int i = 0; i < kCount; ++i) to[i][lane] = static_cast<R>(values[lane][i]);
  }
}

template <typename E, typename R>
void scatter_counted(const Warp& warp, const Inst& inst, Mask mask, const LanePointers& pointers) {
  switch (inst.small[2]) {
    case 1:
      return scatter<E, R, 1>(warp, inst, mask, pointers);
    case 2:
      return scatter<E, R, 2>(warp, inst, mask, pointers);
    case 4:
      return scatter<E, R, 4>(warp, inst, mask, pointers);
    default:
      return scatter<E, R, 8>(warp, inst, mask, pointers);
  }
}

template <typename R>
void scatter_sized(const Warp& warp, const Inst& inst, Mask mask, const LanePointers& pointers) {
  const bool sign = inst.small[4];
  switch (inst.small[1]) {
    case 1:
      return sign ? scatter_counted<std::int8_t, R>(warp, inst, mask, pointers)
                  : scatter_counted<std::uint8_t, R>(warp, inst, mask, pointers);
    case 2:
      return sign ? scatter_counted<std::int16_t, R>(warp, inst, mask, pointers)
                  : scatter_counted<std::uint16_t, R>(warp, inst, mask, pointers);
    case 4:
      return sign ? scatter_counted<std::int32_t, R>(warp, inst, mask, pointers)
                  : scatter_counted<std::uint32_t, R>(warp, inst, mask, pointers);
    default:
      return scatter_counted<std::uint64_t, R>(warp, inst, mask, pointers);
  }
}

void load_values(const Warp& warp, const Inst& inst, Mask mask, const LanePointers& pointers) {
  switch (inst.small[3]) {
    case 16:
      return scatter_sized<std::uint16_t>(warp, inst, mask, pointers);
    case 32:
      return scatter_sized<std::uint32_t>(warp, inst, mask, pointers);
    default:
      return scatter_sized<std::uint64_t>(warp, inst, mask, pointers);
  }
}

// Collects the bytes that one lane stores.
std::uint32_t stored_bytes(const Warp& warp, const Inst& inst, int lane, std::byte* bytes) {
  const std::uint32_t element = inst.small[1];
  const std::uint32_t register_bytes = inst.small[3] / 8;
  for (std::uint32_t i = 0; i < inst.small[2]; ++i) {
    const std::byte* from = warp.registers + warp.cta->program->slots[inst.aux + i] +
                            static_cast<std::uint32_t>(lane) * register_bytes;
    std::memcpy(bytes + i * element, from, element);
  }
  return element * inst.small[2];
}

template <bool kChecked>
void load_shared(Warp& warp, const Inst& inst, Mask mask, const LaneAddresses& addresses) {
  Cta& cta = *warp.cta;
  LanePointers pointers;
  const std::uint32_t bytes = std::uint32_t{inst.small[1]} * inst.small[2];
  reach_shared<kChecked>(warp, mask, addresses, bytes, pointers);
  if (kChecked) {
    const bool compared = inst.compared && (!cta.strict || inst.order != MemoryOrder::kWeak);
    for (Mask rest = mask; rest != 0; rest &= rest - 1) {
      const int lane = lowest_lane(rest);
      const std::uint32_t offset = shared_offset(cta, pointers[static_cast<std::size_t>(lane)]);
      if (compared) {
        cta.shadow.read_compared(warp.index, lane, offset, bytes);
      } else {
        cta.shadow.read(warp.index, lane, offset, bytes);
      }
    }
  }
  load_values(warp, inst, mask, pointers);
}

template <bool kChecked>
void store_shared(Warp& warp, const Inst& inst, Mask mask, const LaneAddresses& addresses) {
  Cta& cta = *warp.cta;
  LanePointers pointers;
  const std::uint32_t bytes = std::uint32_t{inst.small[1]} * inst.small[2];
  reach_shared<kChecked>(warp, mask, addresses, bytes, pointers);
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    std::byte* to = pointers[static_cast<std::size_t>(lane)];
    std::byte value[32];
    stored_bytes(warp, inst, lane, value);
    if (kChecked) {
      cta.shadow.write(warp.index, lane, shared_offset(cta, to), bytes,
                       std::memcmp(to, value, bytes) != 0);
    }
    std::memcpy(to, value, bytes);
  }
}

// Writes each element once and as a whole. Another CTA may use it as a flag or a lock, and the
// memcpy of a library may write the same bytes twice.
template <typename E>
void store_elements(const Warp& warp, const Inst& inst, Mask mask, const LanePointers& pointers) {
  const std::uint32_t register_bytes = inst.small[3] / 8;
  for (std::uint32_t i = 0; i < inst.small[2]; ++i) {
    const std::byte* from = warp.registers + warp.cta->program->slots[inst.aux + i];
    for (Mask rest = mask; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<std::size_t>(lowest_lane(rest));
      E value;
      std::memcpy(&value, from + lane * register_bytes, sizeof(E));
      E* to = reinterpret_cast<E*>(pointers[lane]) + i;
      std::atomic_ref<E>(*to).store(value, std::memory_order_relaxed);
    }
  }
}

void store_values(const Warp& warp, const Inst& inst, Mask mask, const LanePointers& pointers) {
  switch (inst.small[1]) {
    case 1:
      return store_elements<std::uint8_t>(warp, inst, mask, pointers);
    case 2:
      return store_elements<std::uint16_t>(warp, inst, mask, pointers);
    case 4:
      return store_elements<std::uint32_t>(warp, inst, mask, pointers);
    default:
      return store_elements<std::uint64_t>(warp, inst, mask, pointers);
  }
}

void load_param(const Warp& warp, const Inst& inst, Mask mask, const LaneAddresses& addresses) {
  const Cta& cta = *warp.cta;
  LanePointers pointers;
  const std::uint32_t bytes = std::uint32_t{inst.small[1]} * inst.small[2];
  const std::uint64_t size = cta.program->info.parameter_bytes;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::size_t>(lowest_lane(rest));
    const std::uint64_t offset = addresses[lane] & 0xffffffffu;
    if (offset + bytes > size) {
      raise_at(FaultKind::kOutOfBounds, static_cast<int>(lane),
               "{} bytes at offset {} of the parameters, which have {} bytes", bytes, offset, size);
    }
    if (offset % bytes != 0) {
      raise_at(FaultKind::kMisaligned, static_cast<int>(lane),
               "parameter offset {} is not a multiple of the {} bytes accessed", offset, bytes);
    }
    // Parameters are never written. The pointer is not const only because its type serves all
    // spaces.
    pointers[lane] = const_cast<std::byte*>(cta.parameters) + offset;
  }
  load_values(warp, inst, mask, pointers);
}

// Whether a lane's store would change the value. Other CTAs may write there at the same time.
template <typename E>
bool changes_elements(const Warp& warp, const Inst& inst, int lane, std::byte* to) {
  std::byte value[32];
  stored_bytes(warp, inst, lane, value);
  for (std::uint32_t i = 0; i < inst.small[2]; ++i) {
    E fresh;
    std::memcpy(&fresh, value + i * sizeof(E), sizeof(E));
    std::atomic_ref<E> place(reinterpret_cast<E*>(to)[i]);
    if (place.load(std::memory_order_relaxed) != fresh) return true;
  }
  return false;
}

bool changes(const Warp& warp, const Inst& inst, int lane, std::byte* to) {
  switch (inst.small[1]) {
    case 1:
      return changes_elements<std::uint8_t>(warp, inst, lane, to);
    case 2:
      return changes_elements<std::uint16_t>(warp, inst, lane, to);
    case 4:
      return changes_elements<std::uint32_t>(warp, inst, lane, to);
    default:
      return changes_elements<std::uint64_t>(warp, inst, lane, to);
  }
}

// Stores, and searches for races within the block. With `reading=strict` the lanes store one after
// another, so two lanes that store different values at one place are a race. The CUDA Programming
// Guide (chapter "SIMT Architecture") states that one of the values is then stored, and does not
// define which. With `reading=proven` such programs are allowed.
void store_checked(const Warp& warp, const Inst& inst, Mask mask, const LaneAddresses& addresses,
                   const LanePointers& pointers) {
  const std::uint32_t bytes = std::uint32_t{inst.small[1]} * inst.small[2];
  const bool in_turn = warp.cta->strict;
  const auto check = [&](int lane) {
    const auto at = static_cast<std::size_t>(lane);
    if (inst.order == MemoryOrder::kWeak && !changes(warp, inst, lane, pointers[at])) return;
    check_store(warp, lane, addresses[at], bytes, inst.order);
  };
  for (Mask rest = in_turn ? 0 : mask; rest != 0; rest &= rest - 1) check(lowest_lane(rest));
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    if (in_turn) check(lane);
    note_store(warp, lane, addresses[static_cast<std::size_t>(lane)], bytes, inst.order);
    store_values(warp, inst, 1u << lane, pointers);
  }
  if (inst.order == MemoryOrder::kWeak) return;
  warp.cta->block_shadow.give(warp.index, mask, addresses.data());
  warp.cta->cluster->clocks.advance(warp.agent);
}

template <bool kChecked, bool kStore>
void access_global(Warp& warp, const Inst& inst, Mask mask, const LaneAddresses& addresses) {
  LanePointers pointers;
  const std::uint32_t bytes = std::uint32_t{inst.small[1]} * inst.small[2];
  const bool allowed = kChecked && inst.compared && !warp.cta->strict;
  const MemoryOrder order =
      allowed && inst.order == MemoryOrder::kWeak ? MemoryOrder::kRelaxed : inst.order;
  const bool is_strong = strong_for_device(order);
  const AccessKind kind = kStore ? (is_strong ? AccessKind::kStrongWrite : AccessKind::kWrite)
                                 : (is_strong ? AccessKind::kStrongRead : AccessKind::kRead);
  reach_global<kChecked>(warp, mask, addresses, bytes, kStore ? Access::kStore : Access::kLoad,
                         kind, pointers);
  const StrongScope<kChecked> scope(warp, order);
  if (kStore) {
    scope.release(mask, addresses, false);
    if (kChecked) {
      store_checked(warp, inst, mask, addresses, pointers);
    } else {
      store_values(warp, inst, mask, pointers);
    }
  } else {
    load_values(warp, inst, mask, pointers);
    scope.acquire(mask, addresses);
    if (kChecked) note_load(warp, mask, addresses, bytes, order);
  }
}

template <bool kChecked, bool kStore>
void access_local(Warp& warp, const Inst& inst, Mask mask, const LaneAddresses& addresses) {
  LanePointers pointers;
  const std::uint32_t bytes = std::uint32_t{inst.small[1]} * inst.small[2];
  reach_local<kChecked>(warp, mask, addresses, bytes, kStore ? Access::kStore : Access::kLoad,
                        pointers);
  if (kStore) {
    store_values(warp, inst, mask, pointers);
  } else {
    load_values(warp, inst, mask, pointers);
  }
}

template <bool kChecked, bool kStore>
void access_generic(Warp& warp, const Inst& inst, Mask mask, const LaneAddresses& addresses) {
  Mask in[4] = {0, 0, 0, 0};  // global, shared, local, param
  Mask in_cluster = 0;        // shared memory by a rank (machine/cluster.h)
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    // Every address outside of the three windows (program/address_spaces.h), including null, counts
    // as global, and its bounds are checked as a global address.
    const std::uint64_t address = addresses[static_cast<std::size_t>(lane)];
    const std::uint64_t window = address / kWindowBytes;
    const bool ranked = window == 1 && names_cta(address);
    (ranked ? in_cluster : in[window < 4 ? window : 0]) |= 1u << lane;
  }
  if (in_cluster != 0) access_cluster<kStore>(warp, inst, in_cluster);
  if (in[0] != 0) access_global<kChecked, kStore>(warp, inst, in[0], addresses);
  if (in[1] != 0) {
    if (kStore) {
      store_shared<kChecked>(warp, inst, in[1], addresses);
    } else {
      load_shared<kChecked>(warp, inst, in[1], addresses);
    }
  }
  if (in[2] != 0) access_local<kChecked, kStore>(warp, inst, in[2], addresses);
  if (in[3] != 0) {
    if (kStore) {
      raise(FaultKind::kOutOfBounds, "write to the parameters of a kernel", lowest_lane(in[3]));
    }
    load_param(warp, inst, in[3], addresses);
  }
}

template <Space kSpace, bool kChecked, bool kStore>
void access(Warp& warp, const Inst& inst, Mask mask) {
  LaneAddresses addresses;
  lane_addresses(warp, inst.a, inst.small[0], inst.imm, addresses);
  if constexpr (kSpace == Space::kGlobal) {
    access_global<kChecked, kStore>(warp, inst, mask, addresses);
  } else if constexpr (kSpace == Space::kShared) {
    if constexpr (kStore) {
      store_shared<kChecked>(warp, inst, mask, addresses);
    } else {
      load_shared<kChecked>(warp, inst, mask, addresses);
    }
  } else if constexpr (kSpace == Space::kLocal) {
    access_local<kChecked, kStore>(warp, inst, mask, addresses);
  } else if constexpr (kSpace == Space::kParam) {
    load_param(warp, inst, mask, addresses);
  } else {
    access_generic<kChecked, kStore>(warp, inst, mask, addresses);
  }
}

// Converts the addresses of a piece of a load. The lanes of a generic address are sorted by the
// space that they are in.
template <Space kSpace, bool kChecked>
void reach_piece(Warp& warp, Mask mask, const LaneAddresses& addresses, std::uint32_t bytes,
                 LanePointers& pointers) {
  Mask in[4] = {0, 0, 0, 0};  // global, shared, local, param
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    const std::uint64_t address = addresses[static_cast<std::size_t>(lane)];
    const std::uint64_t window = address / kWindowBytes;
    if (kSpace == Space::kNone && window == 1 && names_cta(address)) {
      raise(FaultKind::kUnsupported, "a load with a used_bytes_mask from another CTA's memory",
            lane);
    }
    const int space = kSpace == Space::kShared  ? 1
                      : kSpace == Space::kLocal ? 2
                      : kSpace == Space::kNone  ? static_cast<int>(window < 4 ? window : 0)
                                                : 0;
    in[space] |= 1u << lane;
  }
  if (in[0] != 0) {
    reach_global<kChecked>(warp, in[0], addresses, bytes, Access::kLoad, AccessKind::kRead,
                           pointers);
    if (kChecked) note_load(warp, in[0], addresses, bytes, MemoryOrder::kWeak);
  }
  if (in[1] != 0) {
    reach_shared<kChecked>(warp, in[1], addresses, bytes, pointers);
    for (Mask rest = kChecked ? in[1] : 0; rest != 0; rest &= rest - 1) {
      const int lane = lowest_lane(rest);
      const std::byte* from = pointers[static_cast<std::size_t>(lane)];
      warp.cta->shadow.read(warp.index, lane, shared_offset(*warp.cta, from), bytes);
    }
  }
  if (in[2] != 0) reach_local<kChecked>(warp, in[2], addresses, bytes, Access::kLoad, pointers);
  if (in[3] != 0)
    raise(FaultKind::kUnsupported, "a load with a used_bytes_mask from the parameters");
}

// A load of which only a part is used (.pragma "used_bytes_mask"). The other bytes may be outside
// of all allocations, and are read as ones. The mask follows the slots of the values. It is split
// into pieces that are aligned powers of two.
template <Space kSpace, bool kChecked>
void load_used(Warp& warp, const Inst& inst, Mask mask) {
  LaneAddresses addresses;
  lane_addresses(warp, inst.a, inst.small[0], inst.imm, addresses);
  const std::uint32_t bytes = std::uint32_t{inst.small[1]} * inst.small[2];
  require_aligned(mask, addresses, bytes);
  const std::uint32_t used = warp.cta->program->slots[inst.aux + inst.small[2]];
  std::byte values[kLanes][32];
  std::memset(values, 0xff, sizeof(values));
  for (std::uint32_t at = 0; at < bytes;) {
    if (((used >> at) & 1) == 0) {
      ++at;
      continue;
    }
    const auto run = static_cast<std::uint32_t>(std::countr_one(used >> at));
    std::uint32_t piece = at == 0 ? 16 : std::min(16u, at & (~at + 1));
    while (piece > run || at + piece > bytes) piece /= 2;
    LaneAddresses places = addresses;
    for (std::uint64_t& place : places) place += at;
    LanePointers pointers;
    reach_piece<kSpace, kChecked>(warp, mask, places, piece, pointers);
    for (Mask rest = mask; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<std::size_t>(lowest_lane(rest));
      std::memcpy(values[lane] + at, pointers[lane], piece);
    }
    at += piece;
  }
  LanePointers collected;
  for (std::size_t lane = 0; lane < kLanes; ++lane) collected[lane] = values[lane];
  load_values(warp, inst, mask, collected);
}

// Reads the mask of used bytes of a load. Returns false if all bytes are used.
bool take_used_bytes(Decoder& decoder, std::vector<std::uint32_t>& slots) {
  const Inst& inst = decoder.inst();
  const std::uint32_t bytes = std::uint32_t{inst.small[1]} * inst.small[2];
  const std::uint32_t all = bytes == 32 ? ~0u : (1u << bytes) - 1;
  const std::uint32_t used = decoder.source().used_bytes & all;
  if (used == all) return false;
  slots.push_back(used);
  return true;
}

template <Space kSpace, bool kStore>
void set_handler(Decoder& decoder, bool used) {
  if (used) return decoder.handler(load_used<kSpace, false>, load_used<kSpace, true>);
  decoder.handler(access<kSpace, false, kStore>, access<kSpace, true, kStore>);
}

// An address of a .param variable in a function's frame is local memory here, although the
// instruction has .param. ld and st with no state space take generic addresses.
template <bool kStore>
void decode_access(Decoder& decoder) {
  Inst& inst = decoder.inst();
  const Type type = decoder.type();
  if (type.bits == 0 || type.kind == Type::kPredicate) decoder.malformed("no type");
  const ptx::Operand& memory = decoder.operand(kStore ? 0 : 1);
  const ptx::Operand& value = decoder.operand(kStore ? 1 : 0);
  const Decoder::Address address = decoder.address(memory);
  inst.a = address.base;
  inst.imm = address.offset;
  inst.small[0] = address.base_bits == 64;
  inst.small[1] = static_cast<std::uint8_t>(type.bytes());
  inst.small[4] = type.kind == Type::kSigned;
  std::vector<ptx::Operand> values = {value};
  if (value.kind == ptx::OperandKind::kVector) values = value.elements;
  const std::size_t wanted = decoder.has("v2")   ? 2
                             : decoder.has("v4") ? 4
                             : decoder.has("v8") ? 8
                                                 : 1;
  if (values.size() != wanted) decoder.malformed("the vector has the wrong number of elements");
  if (wanted * static_cast<std::size_t>(type.bytes()) > 32) decoder.unsupported();
  inst.small[2] = static_cast<std::uint8_t>(wanted);
  std::vector<std::uint32_t> slots;
  int bits = 0;
  for (const ptx::Operand& element : values) {
    int element_bits = 0;
    slots.push_back(kStore ? decoder.in_wide(element, type, &element_bits)
                           : decoder.out_wide(element, type, &element_bits));
    // A sink has the width of the other registers of the vector.
    if (element.kind == ptx::OperandKind::kSink) continue;
    if (bits != 0 && element_bits != bits) {
      decoder.unsupported("registers of different widths in one vector");
    }
    bits = element_bits;
  }
  if (bits == 0) bits = std::max(16, type.bits * type.count);
  inst.small[3] = static_cast<std::uint8_t>(bits);
  inst.order = decoder.memory_order(false);
  const bool weak = inst.order == MemoryOrder::kWeak;
  const bool used = !kStore && weak && take_used_bytes(decoder, slots);
  inst.aux = decoder.list(slots);
  const bool shared = decoder.has("shared") || decoder.has("shared::cta");
  // The class is fixed when the instruction is decoded, but the space of a generic address is only
  // known when it runs. So a generic access counts as an access of global memory. An access of
  // .const does too, because its variables are in global memory.
  inst.kind = shared ? (kStore ? Class::kSharedStore : Class::kSharedLoad)
                     : (kStore ? Class::kGlobalStore : Class::kGlobalLoad);
  if (shared) return set_handler<Space::kShared, kStore>(decoder, used);
  if (decoder.has("global") || decoder.has("const")) {
    return set_handler<Space::kGlobal, kStore>(decoder, used);
  }
  if (decoder.has("local") || address.frame) {
    inst.kind = Class::kOther;
    return set_handler<Space::kLocal, kStore>(decoder, used);
  }
  if (decoder.has("param") || decoder.has("param::entry")) {
    inst.kind = Class::kOther;
    if (kStore) decoder.malformed("parameters of a kernel cannot be written");
    return set_handler<Space::kParam, kStore>(decoder, false);
  }
  if (decoder.has("shared::cluster")) return decode_cluster_access(decoder, kStore);
  set_handler<Space::kNone, kStore>(decoder, used);
}

// The handler of instructions that have no effect here.
void nothing(Warp&, const Inst&, Mask) {}

void policy(Warp& warp, const Inst& inst, Mask mask) {
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    warp.lanes<std::uint64_t>(inst.d)[lowest_lane(rest)] = 0;
  }
}

}  // namespace

void decode_ld(Decoder& decoder) { decode_access<false>(decoder); }
void decode_st(Decoder& decoder) {
  if (decoder.has("async")) return decode_store_async(decoder);
  decode_access<true>(decoder);
}

// A cache policy is a hint that has no effect here, so it is 0.
void decode_createpolicy(Decoder& decoder) {
  Inst& inst = decoder.inst();
  inst.d = decoder.out(0, Type{Type::kBits, 64});
  decoder.handler(policy);
}

void decode_prefetch(Decoder& decoder) {
  decoder.address(decoder.operand(0));
  decoder.handler(nothing);
}

}  // namespace annulus::simulator
