// cp.async.bulk and cp.reduce.async.bulk (PTX ISA 9.0, sections 9.7.9.25.4 and 9.7.9.25.5): the
// instructions. When they take effect: simulator/machine/bulk_copies.h.

#include "simulator/machine/bulk_copies.h"

#include "simulator/machine/cluster.h"
#include "simulator/machine/reduce.h"
#include "simulator/ops/bulk_copy.h"
#include "simulator/ops/handlers.h"
#include "simulator/ops/shared_address.h"

namespace annulus::simulator {
namespace {

// Program::slots from Inst::aux on; an address is a slot, 1 if that has 64 bits, and an offset.
enum : std::uint32_t {
  kShared = 0,    // the address in shared memory that is copied to, or from
  kOther = 3,     // global memory, a tensor map, or shared memory that is copied from
  kMbarrier = 6,  // where there is one
  kSize = 9,      // slot; of all but tensor copies
  kCtas = 10,     // slot of a multicast's mask, or kNoSlot
  kCoordinates = 11,
};

// small[] of these instructions.
enum : std::uint8_t {
  kKind = 0,    // Instruction
  kWhere = 1,   // ShareSpace of kShared
  kRank = 2,    // of a tensor copy, else 0
  kReduce = 3,  // Reduction
  kType = 4,    // TensorType of a reduction that is no tensor copy
};
enum class Instruction : std::uint8_t { kLoad, kStore, kShare, kPrefetch };

constexpr std::uint32_t kAlignment = 16;
constexpr std::uint32_t kTensorAlignment = 128;
constexpr std::uint32_t kMapAlignment = 64;

std::uint64_t address_at(const Warp& warp, const std::uint32_t* slots, std::uint32_t which,
                         int lane) {
  const std::uint64_t base = slots[which + 1] != 0 ? warp.lanes<std::uint64_t>(slots[which])[lane]
                                                   : warp.lanes<std::uint32_t>(slots[which])[lane];
  return base + static_cast<std::uint64_t>(
                    static_cast<std::int64_t>(static_cast<std::int32_t>(slots[which + 2])));
}

// A shared address of the CTA, or of one of the cluster.
SharedPlace place_at(const Warp& warp, const std::uint32_t* slots, std::uint32_t which,
                     ShareSpace space, std::uint32_t bytes, std::uint32_t alignment, int lane) {
  const SharedPlace place = shared_place(warp, slots[which], slots[which + 1] != 0,
                                         static_cast<std::int32_t>(slots[which + 2]), space, lane);
  const std::uint32_t address = place.offset + kSharedBase;
  if (address % alignment != 0) {
    raise_at(FaultKind::kMisaligned, lane, "shared address {} is no multiple of {}", address,
             alignment);
  }
  const std::size_t size = place.cta->shared.size();
  if (place.offset > size || bytes > size - place.offset) {
    raise_at(FaultKind::kOutOfBounds, lane,
             "{} bytes at shared address {}, but the CTA has {} bytes from {} on", bytes, address,
             size, kSharedBase);
  }
  return place;
}

TensorMap load_map(Warp& warp, std::uint64_t address, int lane) {
  Cta& cta = *warp.cta;
  TensorMap map;
  const std::uint64_t window = address / kWindowBytes * kWindowBytes;
  const std::uint64_t offset = address - window;
  if (offset % kMapAlignment != 0) {
    raise_at(FaultKind::kMisaligned, lane, "tensor map at address {:#x}, no multiple of {}",
             address, kMapAlignment);
  }
  const std::byte* from = nullptr;
  if (window == kParamWindow) {
    if (offset + sizeof(map) > cta.program->info.parameter_bytes) {
      raise_at(FaultKind::kOutOfBounds, lane, "a tensor map at offset {} of {} bytes of parameters",
               offset, cta.program->info.parameter_bytes);
    }
    from = cta.parameters + offset;
  } else if (window == 0) {
    check_global_read(warp, lane, address, sizeof(map));
    from = reinterpret_cast<const std::byte*>(address);
  } else {
    raise_at(FaultKind::kInvalidOperand, lane,
             "a tensor map at address {:#x}: it has to be a parameter, or in global memory",
             address);
  }
  std::copy_n(from, sizeof(map), reinterpret_cast<std::byte*>(&map));
  if (!map.valid()) {
    raise_at(FaultKind::kInvalidOperand, lane,
             "at address {:#x} there is no tensor map that cuTensorMapEncodeTiled made", address);
  }
  return map;
}

// Checks what a copy does to global memory, and marks what it writes. The bytes themselves move
// later.
template <bool kChecked>
void reach_range(Warp& warp, std::uint64_t address, std::uint32_t bytes, AccessKind kind,
                 int lane) {
  if (bytes == 0) return;
  if (!kChecked && !writes(kind)) return check_global_read(warp, lane, address, bytes);
  // A reduction is atomic, element by element, and needs something to begin with.
  const Access access = kind == AccessKind::kWrite ? Access::kStore : Access::kLoad;
  // As a warp would that copies it in the largest pieces that the alignment allows.
  std::uint32_t piece = 16;
  while (((address | bytes) & (piece - 1)) != 0) piece /= 2;
  LaneAddresses addresses;
  LanePointers pointers;
  try {
    for (std::uint32_t at = 0; at < bytes; at += kLanes * piece) {
      const std::uint32_t lanes = std::min<std::uint32_t>(kLanes, (bytes - at) / piece);
      for (std::uint32_t i = 0; i < lanes; ++i) addresses[i] = address + at + i * piece;
      const Mask mask = lanes == kLanes ? kFull : (1u << lanes) - 1;
      reach_global<kChecked>(warp, mask, addresses, piece, access, kind, pointers);
    }
  } catch (Fault& fault) {
    fault.lane = lane;
    throw;
  }
}

template <bool kChecked>
void reach_copy(Warp& warp, const BulkCopy& copy, AccessKind kind) {
  if (!copy.tensor) {
    if (copy.address % kAlignment != 0) {
      raise_at(FaultKind::kMisaligned, copy.lane, "global address {:#x} is no multiple of {}",
               copy.address, kAlignment);
    }
    return reach_range<kChecked>(warp, copy.address, copy.bytes, kind, copy.lane);
  }
  for_rows(copy.map, copy.start, [&](const BoxRow& row) {
    reach_range<kChecked>(warp, row.address, row.bytes, kind, copy.lane);
  });
}

// The geometry of a tensor copy.
void take_box(Warp& warp, const Inst& inst, const std::uint32_t* slots, BulkCopy& copy) {
  copy.tensor = true;
  copy.map = load_map(warp, address_at(warp, slots, kOther, copy.lane), copy.lane);
  if (copy.map.rank != inst.small[kRank]) {
    raise_at(FaultKind::kInvalidOperand, copy.lane, "a tensor map of {} dimensions, a copy of {}",
             copy.map.rank, inst.small[kRank]);
  }
  for (std::size_t d = 0; d < copy.map.rank; ++d) {
    copy.start[d] = warp.lanes<std::int32_t>(slots[kCoordinates + d])[copy.lane];
  }
  if (copy.map.swizzle != Swizzle::kNone &&
      copy.map.row_bytes() != swizzle_span(copy.map.swizzle)) {
    raise_at(FaultKind::kUnsupported, copy.lane,
             "a box whose rows have {} bytes under a swizzle of {} is not modelled",
             copy.map.row_bytes(), swizzle_span(copy.map.swizzle));
  }
  copy.bytes = copy.map.box_bytes();
}

void take_size(Warp& warp, const std::uint32_t* slots, BulkCopy& copy) {
  copy.bytes = warp.lanes<std::uint32_t>(slots[kSize])[copy.lane];
  if (copy.bytes % kAlignment != 0) {
    raise_at(FaultKind::kInvalidOperand, copy.lane, "a copy of {} bytes, no multiple of {}",
             copy.bytes, kAlignment);
  }
}

std::string described(const BulkCopy& copy) {
  return fmt::format("a bulk copy of lane {} of warp {}{}", copy.lane, copy.issuer->index,
                     copy.kind == BulkCopy::Kind::kStore
                         ? std::string()
                         : fmt::format(", which the mbarrier at shared address {} counts,",
                                       copy.mbarrier + kSharedBase));
}

// Ranks of the CTAs that a load writes to; its mbarriers are there too.
void take_targets(Warp& warp, const Inst& inst, const std::uint32_t* slots, BulkCopy& copy) {
  const auto space = static_cast<ShareSpace>(inst.small[kWhere]);
  const std::uint32_t alignment = copy.tensor ? kTensorAlignment : kAlignment;
  const SharedPlace target =
      place_at(warp, slots, kShared, space, copy.bytes, alignment, copy.lane);
  const SharedPlace mbarrier = place_at(warp, slots, kMbarrier, space, 8, 8, copy.lane);
  if (target.cta != mbarrier.cta) {
    raise_at(FaultKind::kInvalidOperand, copy.lane,
             "a copy into CTA {} of the cluster, with an mbarrier of CTA {}", target.cta->rank,
             mbarrier.cta->rank);
  }
  copy.target = target.offset;
  copy.mbarrier = mbarrier.offset;
  copy.ctas = 1u << target.cta->rank;
  if (slots[kCtas] == kNoSlot) return;
  copy.ctas = warp.lanes<std::uint16_t>(slots[kCtas])[copy.lane];
  if (copy.ctas == 0 || (copy.ctas >> warp.cta->cluster->ctas.size()) != 0) {
    raise_at(FaultKind::kInvalidOperand, copy.lane,
             "multicast to the CTAs of mask {:#x}; the cluster has {}", copy.ctas,
             warp.cta->cluster->ctas.size());
  }
}

void begin_in_shadows(Warp& warp, BulkCopy& copy) {
  for (std::uint32_t rest = copy.ctas; rest != 0; rest &= rest - 1) {
    Cta& cta = *warp.cta->cluster->ctas[static_cast<std::size_t>(lowest_lane(rest))];
    check_started(warp, cta, copy.lane);
    const Mbarrier& mbarrier = cta.mbarriers.use(cta, warp, copy.mbarrier, copy.lane, true);
    if (!warp.cta->checked) continue;
    const std::uint32_t record = cta.shadow.add({.kind = SharedShadow::Foreign::kBulkWrite,
                                                 .agent = mbarrier.agent,
                                                 .pc = warp.pc,
                                                 .what = described(copy)});
    cta.shadow.begin_write(warp.agent, copy.lane, copy.target, copy.bytes, record);
    copy.records.push_back(record);
  }
}

// What of a box lies outside the tensor is not stored: nothing need have been written there.
void begin_read(Warp& warp, const BulkCopy& copy) {
  const auto read = [&](std::uint32_t offset, std::uint32_t bytes) {
    warp.cta->shadow.begin_read(warp.agent, copy.lane, offset, bytes, copy.source_record);
  };
  bool inside = true;
  if (copy.tensor) {
    for_rows(copy.map, copy.start,
             [&](const BoxRow& row) { inside &= row.bytes == copy.map.row_bytes(); });
  }
  if (inside) return read(copy.source, copy.bytes);
  constexpr std::uint32_t kChunk = 16;
  for_rows(copy.map, copy.start, [&](const BoxRow& row) {
    const std::uint32_t end = row.bytes == 0 ? 0 : row.skip + row.bytes;
    for (std::uint32_t at = row.skip / kChunk * kChunk; at < end; at += kChunk) {
      read(swizzled(copy.map.swizzle, copy.source + row.offset + at), kChunk);
    }
  });
}

// What is copied: a box of a tensor, or a number of bytes.
void take_geometry(Warp& warp, const Inst& inst, const std::uint32_t* slots, BulkCopy& copy) {
  copy.reduction = static_cast<Reduction>(inst.small[kReduce]);
  copy.type = static_cast<TensorType>(inst.small[kType]);
  if (inst.small[kRank] == 0) {
    take_size(warp, slots, copy);
    if (static_cast<Instruction>(inst.small[kKind]) != Instruction::kShare) {
      copy.address = address_at(warp, slots, kOther, copy.lane);
    }
    return;
  }
  take_box(warp, inst, slots, copy);
  copy.type = copy.map.type;
  if (!can_reduce(copy.reduction, copy.type)) {
    raise_at(FaultKind::kInvalidOperand, copy.lane,
             "this reduction does not exist for the elements of the tensor");
  }
}

// A store's source is free when its issuer has waited, that of a copy between CTAs when its
// mbarrier says that it has arrived.
void begin_source(Warp& warp, BulkCopy& copy) {
  Cta& cta = *warp.cta;
  SharedShadow::Record record{.kind = SharedShadow::Foreign::kBulkRead,
                              .agent = warp.agent,
                              .lane = copy.lane,
                              .pc = warp.pc,
                              .what = described(copy)};
  if (copy.kind == BulkCopy::Kind::kShare) {
    const Cta& target = *cta.cluster->ctas[static_cast<std::size_t>(lowest_lane(copy.ctas))];
    record.agent = target.mbarriers.find(copy.mbarrier)->agent;
    record.lane = ClusterClocks::kCollective;
  }
  copy.source_record = cta.shadow.add(std::move(record));
  begin_read(warp, copy);
}

// Takes source and target, and checks what the copy will do to both.
template <bool kChecked>
void begin_copy(Warp& warp, const Inst& inst, const std::uint32_t* slots, Instruction kind,
                BulkCopy& copy) {
  switch (kind) {
    case Instruction::kPrefetch:
      break;
    case Instruction::kLoad:
      copy.kind = BulkCopy::Kind::kLoad;
      take_targets(warp, inst, slots, copy);
      reach_copy<kChecked>(warp, copy, AccessKind::kRead);
      begin_in_shadows(warp, copy);
      break;
    case Instruction::kShare:
      copy.kind = BulkCopy::Kind::kShare;
      copy.source =
          place_at(warp, slots, kOther, ShareSpace::kCta, copy.bytes, kAlignment, copy.lane).offset;
      take_targets(warp, inst, slots, copy);
      begin_in_shadows(warp, copy);
      break;
    case Instruction::kStore:
      copy.kind = BulkCopy::Kind::kStore;
      copy.source = place_at(warp, slots, kShared, ShareSpace::kCta, copy.bytes,
                             copy.tensor ? kTensorAlignment : kAlignment, copy.lane)
                        .offset;
      copy.group = warp.bulk_groups[static_cast<std::size_t>(copy.lane)];
      reach_copy<kChecked>(
          warp, copy,
          copy.reduction == Reduction::kNone ? AccessKind::kWrite : AccessKind::kStrongWrite);
  }
  if (kChecked && kind != Instruction::kLoad) begin_source(warp, copy);
}

template <bool kChecked>
void run_lane(Warp& warp, const Inst& inst, int lane) {
  const std::uint32_t* slots = &warp.cta->program->slots[inst.aux];
  const auto kind = static_cast<Instruction>(inst.small[kKind]);
  BulkCopy copy;
  copy.issuer = &warp;
  copy.lane = lane;
  copy.pc = warp.pc;
  take_geometry(warp, inst, slots, copy);
  if (copy.bytes == 0) return;
  if (kind == Instruction::kPrefetch) return reach_copy<false>(warp, copy, AccessKind::kRead);
  begin_copy<kChecked>(warp, inst, slots, kind, copy);
  Cluster& cluster = *warp.cta->cluster;
  cluster.copies.issue(cluster, std::move(copy));
}

template <bool kChecked>
void run(Warp& warp, const Inst& inst, Mask mask) {
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    run_lane<kChecked>(warp, inst, lowest_lane(rest));
  }
}

void commit(Warp& warp, const Inst&, Mask mask) {
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    ++warp.bulk_groups[static_cast<std::size_t>(lowest_lane(rest))];
  }
}

void wait(Warp& warp, const Inst& inst, Mask mask) {
  Cta& cta = *warp.cta;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    cta.cluster->copies.wait(*cta.cluster, warp, lowest_lane(rest),
                             static_cast<std::uint32_t>(inst.imm), inst.small[0] != 0);
  }
}

// Appends an address operand to `words`.
void take_address(Decoder& decoder, const ptx::Operand& operand, std::vector<std::uint32_t>& words,
                  std::uint32_t which) {
  const Decoder::Address address = decoder.address(operand);
  if (address.offset != static_cast<std::int32_t>(address.offset)) {
    // The address of a global variable.
    words[which] = decoder.constant(static_cast<std::uint64_t>(address.offset), 8);
    words[which + 1] = 1;
    words[which + 2] = 0;
    return;
  }
  words[which] = address.base;
  words[which + 1] = address.base_bits == 64;
  words[which + 2] = static_cast<std::uint32_t>(address.offset);
}

void take_reduction(Decoder& decoder) {
  static constexpr std::pair<const char*, Reduction> kNames[] = {
      {"add", Reduction::kAdd}, {"min", Reduction::kMin}, {"max", Reduction::kMax},
      {"inc", Reduction::kInc}, {"dec", Reduction::kDec}, {"and", Reduction::kAnd},
      {"or", Reduction::kOr},   {"xor", Reduction::kXor}};
  static constexpr std::pair<const char*, TensorType> kTypes[] = {
      {"u32", TensorType::kU32}, {"s32", TensorType::kS32},   {"u64", TensorType::kU64},
      {"s64", TensorType::kS64}, {"f16", TensorType::kF16},   {"f32", TensorType::kF32},
      {"f64", TensorType::kF64}, {"bf16", TensorType::kBf16}, {"b32", TensorType::kU32},
      {"b64", TensorType::kU64}};
  Inst& inst = decoder.inst();
  for (const auto& [name, reduction] : kNames) {
    if (decoder.has(name)) inst.small[kReduce] = static_cast<std::uint8_t>(reduction);
  }
  if (inst.small[kReduce] == 0) decoder.unsupported("this reduction is not modelled");
  if (inst.small[kRank] != 0) return;
  bool typed = false;
  for (const auto& [name, type] : kTypes) {
    if (!decoder.has(name)) continue;
    inst.small[kType] = static_cast<std::uint8_t>(type);
    typed = true;
  }
  if (!typed || !can_reduce(static_cast<Reduction>(inst.small[kReduce]),
                            static_cast<TensorType>(inst.small[kType]))) {
    decoder.unsupported("this reduction is not modelled");
  }
}

std::uint8_t tensor_rank(const Decoder& decoder) {
  if (!decoder.has("tensor")) return 0;
  static constexpr const char* kNames[] = {"1d", "2d", "3d", "4d", "5d"};
  for (std::uint8_t rank = 1; rank <= 5; ++rank) {
    if (decoder.has(kNames[rank - 1])) return rank;
  }
  decoder.malformed("a tensor copy has one to five dimensions");
}

void refuse_other_forms(const Decoder& decoder) {
  for (const char* other :
       {"im2col", "im2col::w", "im2col::w::128", "im2col_no_offs", "tile::gather4",
        "tile::scatter4", "cp_mask", "ignore_oob", "cta_group::1", "cta_group::2"}) {
    if (decoder.has(other)) decoder.unsupported();
  }
}

void take_coordinates(Decoder& decoder, const ptx::Operand& map,
                      std::vector<std::uint32_t>& words) {
  if (map.elements.size() != 1 || map.elements[0].elements.size() != decoder.inst().small[kRank]) {
    decoder.malformed("there is one coordinate per dimension");
  }
  for (const ptx::Operand& coordinate : map.elements[0].elements) {
    words.push_back(decoder.in(coordinate, Type{Type::kSigned, 32}));
  }
}

// Operands: [to], [from], [size], [mbarrier], [mask of CTAs], [cache policy]; of tensor copies the
// map comes with its coordinates in place of global memory, and there is no size.
std::vector<std::uint32_t> take_operands(Decoder& decoder, Instruction kind) {
  Inst& inst = decoder.inst();
  const bool tensor = inst.small[kRank] != 0;
  const bool counted = kind == Instruction::kLoad || kind == Instruction::kShare;
  const bool prefetch = kind == Instruction::kPrefetch;
  const bool store = kind == Instruction::kStore;
  std::vector<std::uint32_t> words(kCoordinates, kNoSlot);
  const ShareSpace space = decoder.has("shared::cluster") ? ShareSpace::kCluster : ShareSpace::kCta;
  inst.small[kWhere] = static_cast<std::uint8_t>(counted ? space : ShareSpace::kCta);
  std::size_t next = 0;
  const ptx::Operand& first = decoder.operand(next++);
  const ptx::Operand& map_or_memory = prefetch || store ? first : decoder.operand(next);
  if (!prefetch) {
    take_address(decoder, store ? decoder.operand(next) : first, words, kShared);
    ++next;
  }
  take_address(decoder, map_or_memory, words, kOther);
  if (!tensor) words[kSize] = decoder.in(next++, kU32);
  if (counted) take_address(decoder, decoder.operand(next++), words, kMbarrier);
  if (decoder.has("multicast::cluster")) {
    words[kCtas] = decoder.in(next++, Type{Type::kUnsigned, 16});
  }
  if (decoder.has("L2::cache_hint")) decoder.in(next++, Type{Type::kBits, 64});
  if (next != decoder.operands()) decoder.malformed("it takes another number of operands");
  if (tensor) take_coordinates(decoder, map_or_memory, words);
  return words;
}

}  // namespace

void decode_bulk(Decoder& decoder) {
  Inst& inst = decoder.inst();
  inst.kind = Class::kAsyncCopy;
  if (decoder.has("commit_group")) return decoder.handler(commit);
  if (decoder.has("wait_group")) {
    inst.imm = decoder.immediate(0);
    if (inst.imm < 0) decoder.malformed("less than no groups");
    inst.small[0] = decoder.has("read");
    return decoder.handler(wait);
  }
  refuse_other_forms(decoder);
  inst.small[kRank] = tensor_rank(decoder);
  const bool counted = decoder.has("mbarrier::complete_tx::bytes");
  const bool prefetch = decoder.has("prefetch");
  const bool store = decoder.has("bulk_group");
  const bool from_global = decoder.has("global");
  if (counted + prefetch + store != 1) decoder.unsupported();
  const Instruction kind = prefetch      ? Instruction::kPrefetch
                           : store       ? Instruction::kStore
                           : from_global ? Instruction::kLoad
                                         : Instruction::kShare;
  inst.small[kKind] = static_cast<std::uint8_t>(kind);
  if (decoder.source().modifiers[0] == "reduce") {
    if (!store) decoder.unsupported("only reductions into global memory are modelled");
    take_reduction(decoder);
  }
  inst.aux = decoder.list(take_operands(decoder, kind));
  decoder.handler(run<false>, run<true>);
}

}  // namespace annulus::simulator
