// Decodes bulk copies: which instruction it is, and which registers its operands are in.

#include "simulator/machine/reduce.h"
#include "simulator/ops/bulk_copy.h"
#include "simulator/ops/handlers.h"
#include "simulator/ops/shared_address.h"

namespace annulus::simulator {
namespace bulk {
namespace {

// Stores an address operand at words[which].
void take_address(Decoder& decoder, const ptx::Operand& operand, std::vector<std::uint32_t>& words,
                  std::uint32_t which) {
  const Decoder::Address address = decoder.address(operand);
  if (address.offset != static_cast<std::int32_t>(address.offset)) {
    // The address of a global variable does not fit into the offset, so it becomes the base.
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
  Inst& inst = decoder.inst();
  for (int each = 1; each <= static_cast<int>(Reduction::kXor); ++each) {
    if (!decoder.has(name_of(static_cast<Reduction>(each)))) continue;
    inst.small[kReduce] = static_cast<std::uint8_t>(each);
  }
  if (inst.small[kReduce] == 0) decoder.unsupported("this reduction is not modelled");
  if (inst.small[kRank] != 0) return;
  auto type = TensorType::kUint8;  // no reduction has this type
  for (int each = 0; each < kTensorTypes; ++each) {
    if (decoder.has(name_of(static_cast<TensorType>(each)))) type = static_cast<TensorType>(each);
  }
  if (decoder.has("b32")) type = TensorType::kUint32;
  if (decoder.has("b64")) type = TensorType::kUint64;
  inst.small[kType] = static_cast<std::uint8_t>(type);
  if (!can_reduce(static_cast<Reduction>(inst.small[kReduce]), type, false)) {
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
    decoder.malformed("the number of coordinates has to be the number of dimensions");
  }
  for (const ptx::Operand& coordinate : map.elements[0].elements) {
    words.push_back(decoder.in(coordinate, Type{Type::kSigned, 32}));
  }
}

// The operands are [to], [from], [size], [mbarrier], [mask of CTAs], [cache policy]. A tensor copy
// has a map with its coordinates in place of global memory, and no size.
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
  if (next != decoder.operands()) decoder.malformed("the number of operands is wrong");
  if (tensor) take_coordinates(decoder, map_or_memory, words);
  return words;
}

}  // namespace
}  // namespace bulk

void decode_bulk(Decoder& decoder) {
  using namespace bulk;
  Inst& inst = decoder.inst();
  inst.kind = Class::kAsyncCopy;
  if (decoder.has("commit_group")) return decoder.handler(bulk::commit);
  if (decoder.has("wait_group")) {
    inst.imm = decoder.immediate(0);
    if (inst.imm < 0) decoder.malformed("the number of groups is negative");
    inst.small[0] = decoder.has("read");
    return decoder.handler(bulk::wait);
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

// st.async{.weak}{.shared::cluster}{.mbarrier::complete_tx::bytes}{.v2, .v4}.type [to], value,
// [mbarrier] (9.7.9.12). The form with .mmio releases global memory and is not supported.
void decode_store_async(Decoder& decoder) {
  using namespace bulk;
  Inst& inst = decoder.inst();
  inst.kind = Class::kAsyncCopy;
  const Type type = decoder.type();
  if (decoder.has("release") || decoder.has("global") || (type.bits != 32 && type.bits != 64)) {
    decoder.unsupported();
  }
  if (decoder.operands() != 3)
    decoder.malformed("the operands have to be an address, a value and an mbarrier");
  const ptx::Operand& value = decoder.operand(1);
  std::vector<ptx::Operand> values = {value};
  if (value.kind == ptx::OperandKind::kVector) values = value.elements;
  const std::size_t wanted = decoder.has("v2") ? 2 : decoder.has("v4") ? 4 : 1;
  if (values.size() != wanted) decoder.malformed("the vector has the wrong number of elements");
  if (wanted * static_cast<std::size_t>(type.bytes()) > 16) decoder.unsupported();
  std::vector<std::uint32_t> words(kCoordinates, kNoSlot);
  take_address(decoder, decoder.operand(0), words, kShared);
  for (const ptx::Operand& each : values) words.push_back(decoder.in(each, type));
  take_address(decoder, decoder.operand(2), words, kMbarrier);
  inst.small[kKind] = static_cast<std::uint8_t>(Instruction::kValue);
  inst.small[kWhere] = static_cast<std::uint8_t>(ShareSpace::kCluster);
  inst.small[kWidth] = static_cast<std::uint8_t>(type.bytes());
  inst.small[kValues] = static_cast<std::uint8_t>(wanted);
  inst.aux = decoder.list(words);
  decoder.handler(store_async);
}

}  // namespace annulus::simulator
