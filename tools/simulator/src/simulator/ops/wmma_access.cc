// wmma.load and wmma.store.

#include <algorithm>
#include <cstring>

#include "simulator/ops/access.h"
#include "simulator/ops/shared_address.h"
#include "simulator/ops/wmma.h"

namespace annulus::simulator {
namespace {

using ptx::Space;

constexpr std::size_t kMaxBytes = 1024;  // bytes of a matrix

// A matrix in the Inst of a load or store: a the base slot, imm the offset, b the slot of the
// stride or none, aux the first of the registers' slots, small[0] the base has 64 bits, small[1]
// rows, small[2] columns, small[3] the bytes of an element, plus 128 if columns are contiguous in
// memory, small[4] the number of registers.
struct WmmaMatrix {
  explicit WmmaMatrix(const Inst& inst)
      : rows(inst.small[1]),
        columns(inst.small[2]),
        element_bytes(inst.small[3] & 127u),
        by_columns(inst.small[3] >= 128),
        registers(inst.small[4]) {}

  std::uint32_t bytes() const { return rows * columns * element_bytes; }
  std::uint32_t register_bytes() const { return element_bytes == 8 ? 8 : 4; }
  // contiguous rows or columns in memory
  std::uint32_t lines() const { return by_columns ? columns : rows; }
  std::uint32_t line_length() const { return by_columns ? rows : columns; }  // in elements
  std::uint32_t fragment_bytes() const { return registers * register_bytes(); }
  // Memory is accessed in pieces of this size, one for each lane. The size divides every line.
  std::uint32_t piece_bytes() const { return std::min(16u, fragment_bytes()); }

  std::uint32_t rows;
  std::uint32_t columns;
  std::uint32_t element_bytes;
  bool by_columns;
  std::uint32_t registers;
};

struct MatrixPlace {
  std::uint64_t address;
  std::uint64_t stride;  // in bytes
};

MatrixPlace place_of(const Warp& warp, const Inst& inst, const WmmaMatrix& matrix) {
  LaneAddresses addresses;
  lane_addresses(warp, inst.a, inst.small[0], inst.imm, addresses);
  const auto* strides = inst.b == kNoSlot ? nullptr : warp.lanes<std::uint32_t>(inst.b);
  for (int lane = 1; lane < kLanes; ++lane) {
    if (addresses[static_cast<std::size_t>(lane)] != addresses[0]) {
      raise_at(FaultKind::kInvalidOperand, lane,
               "wmma needs the same address in all lanes: this lane has {:#x}, lane 0 has {:#x}",
               addresses[static_cast<std::size_t>(lane)], addresses[0]);
    }
    if (strides != nullptr && strides[lane] != strides[0]) {
      raise_at(FaultKind::kInvalidOperand, lane,
               "wmma needs the same stride in all lanes: this lane has {}, lane 0 has {}",
               strides[lane], strides[0]);
    }
  }
  // In the manual, every row is at a multiple of the fragment's size. The CUDA Programming Guide
  // allows strides of 16 bytes, which are enough for the pieces, but it does not allow such an
  // address for the first row.
  if (warp.cta->strict) require_aligned(1, addresses, matrix.fragment_bytes());
  const std::uint64_t stride = strides == nullptr ? matrix.line_length() : strides[0];
  return {addresses[0], stride * matrix.element_bytes};
}

// Whether the address, which may be generic, is in shared memory.
template <Space kSpace>
bool in_shared(const MatrixPlace& place) {
  if constexpr (kSpace != Space::kNone) return kSpace == Space::kShared;
  const std::uint64_t window = place.address / kWindowBytes;
  if (window == 1 && names_cta(place.address)) {
    raise(FaultKind::kUnsupported, "wmma on a matrix in the shared memory of another CTA");
  }
  if (window == 2 || window == 3) {
    raise(FaultKind::kInvalidOperand,
          "wmma needs a matrix in global or shared memory, not in local memory or a parameter", 0);
  }
  return window == 1;
}

// Calls visit(mask, addresses, first byte) for the pieces of the matrix, 32 at a time. The bytes
// are counted along the lines in memory, without the gaps that a stride leaves.
template <typename Visit>
void each_piece(const WmmaMatrix& matrix, const MatrixPlace& place, Visit visit) {
  const std::uint32_t piece = matrix.piece_bytes();
  const std::uint32_t line_bytes = matrix.line_length() * matrix.element_bytes;
  for (std::uint32_t first = 0; first < matrix.bytes(); first += kLanes * piece) {
    LaneAddresses addresses{};
    Mask mask = 0;
    for (std::uint32_t lane = 0; lane < kLanes && first + lane * piece < matrix.bytes(); ++lane) {
      const std::uint32_t at = first + lane * piece;
      addresses[lane] = place.address + at / line_bytes * place.stride + at % line_bytes;
      mask |= 1u << lane;
    }
    visit(mask, addresses, first);
  }
}

template <typename E>
void transpose_elements(const std::byte* from, std::byte* to, std::uint32_t lines,
                        std::uint32_t length) {
  for (std::uint32_t line = 0; line < lines; ++line) {
    for (std::uint32_t i = 0; i < length; ++i) {
      std::memcpy(to + (i * lines + line) * sizeof(E), from + (line * length + i) * sizeof(E),
                  sizeof(E));
    }
  }
}

void transpose(const std::byte* from, std::byte* to, std::uint32_t lines, std::uint32_t length,
               std::uint32_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return transpose_elements<std::uint8_t>(from, to, lines, length);
    case 2:
      return transpose_elements<std::uint16_t>(from, to, lines, length);
    case 4:
      return transpose_elements<std::uint32_t>(from, to, lines, length);
    default:
      return transpose_elements<std::uint64_t>(from, to, lines, length);
  }
}

template <bool kChecked>
void reach_pieces(Warp& warp, bool shared, Mask lanes, const LaneAddresses& addresses,
                  std::uint32_t piece, Access access, LanePointers& pointers) {
  if (shared) return reach_shared<kChecked>(warp, lanes, addresses, piece, pointers);
  const AccessKind kind = access == Access::kLoad ? AccessKind::kRead : AccessKind::kWrite;
  reach_global<kChecked>(warp, lanes, addresses, piece, access, kind, pointers);
}

// The manual does not define which lane reads which element. So in shared memory all lanes together
// read each piece, as for ldmatrix. In global memory each lane reads its pieces.
template <Space kSpace, bool kChecked>
void load_matrix(Warp& warp, const Inst& inst, Mask mask) {
  require_wmma_warp(mask);
  Cta& cta = *warp.cta;
  const WmmaMatrix matrix(inst);
  const MatrixPlace place = place_of(warp, inst, matrix);
  const bool shared = in_shared<kSpace>(place);
  const std::uint32_t piece = matrix.piece_bytes();
  std::byte lines[kMaxBytes];
  each_piece(matrix, place, [&](Mask lanes, const LaneAddresses& addresses, std::uint32_t first) {
    LanePointers pointers;
    reach_pieces<kChecked>(warp, shared, lanes, addresses, piece, Access::kLoad, pointers);
    if (kChecked && !shared) note_load(warp, lanes, addresses, piece, MemoryOrder::kWeak);
    for (Mask rest = lanes; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<std::uint32_t>(lowest_lane(rest));
      const std::byte* from = pointers[lane];
      if (kChecked && shared) {
        cta.shadow.read(warp.index, SharedShadow::kCollective, shared_offset(cta, from), piece);
      }
      std::memcpy(lines + first + lane * piece, from, piece);
    }
  });
  std::byte transposed[kMaxBytes];
  const std::byte* rows = lines;
  if (matrix.by_columns) {
    transpose(lines, transposed, matrix.columns, matrix.rows, matrix.element_bytes);
    rows = transposed;
  }
  const std::uint32_t run = kLanes * matrix.register_bytes();
  for (std::uint32_t r = 0; r < matrix.registers; ++r) {
    std::memcpy(warp.registers + cta.program->slots[inst.aux + r], rows + r * run % matrix.bytes(),
                run);
  }
}

// In shared memory a piece is recorded as written by several lanes, as for stmatrix. In global
// memory the lanes write their pieces one after another.
template <Space kSpace, bool kChecked>
void store_matrix(Warp& warp, const Inst& inst, Mask mask) {
  require_wmma_warp(mask);
  Cta& cta = *warp.cta;
  const WmmaMatrix matrix(inst);
  const MatrixPlace place = place_of(warp, inst, matrix);
  const bool shared = in_shared<kSpace>(place);
  const std::uint32_t piece = matrix.piece_bytes();
  std::byte rows[kMaxBytes];
  const std::uint32_t run = kLanes * matrix.register_bytes();
  for (std::uint32_t r = 0; r < matrix.registers; ++r) {
    std::memcpy(rows + r * run, warp.registers + cta.program->slots[inst.aux + r], run);
  }
  std::byte transposed[kMaxBytes];
  const std::byte* lines = rows;
  if (matrix.by_columns) {
    transpose(rows, transposed, matrix.rows, matrix.columns, matrix.element_bytes);
    lines = transposed;
  }
  each_piece(matrix, place, [&](Mask lanes, const LaneAddresses& addresses, std::uint32_t first) {
    LanePointers pointers;
    reach_pieces<kChecked>(warp, shared, lanes, addresses, piece, Access::kStore, pointers);
    for (Mask rest = lanes; rest != 0; rest &= rest - 1) {
      const int lane = lowest_lane(rest);
      const auto at = static_cast<std::uint32_t>(lane);
      std::byte* to = pointers[at];
      const std::byte* from = lines + first + at * piece;
      if (kChecked) {
        const bool changes = std::memcmp(to, from, piece) != 0;
        if (shared) {
          cta.shadow.write(warp.index, SharedShadow::kSeveral, shared_offset(cta, to), piece,
                           changes);
        } else {
          if (changes) check_store(warp, lane, addresses[at], piece, MemoryOrder::kWeak);
          note_store(warp, lane, addresses[at], piece, MemoryOrder::kWeak);
        }
      }
      std::memcpy(to, from, piece);
    }
  });
}

template <Space kSpace>
void set_access(Decoder& decoder, bool stores) {
  if (stores) {
    decoder.handler(store_matrix<kSpace, false>, store_matrix<kSpace, true>);
  } else {
    decoder.handler(load_matrix<kSpace, false>, load_matrix<kSpace, true>);
  }
}

}  // namespace

void decode_wmma_access(Decoder& decoder, bool stores) {
  Inst& inst = decoder.inst();
  const WmmaShape& shape = wmma_shape(decoder);
  const std::string_view type = decoder.source().modifiers.back();
  const bool a = decoder.has("a");
  const bool b = decoder.has("b");
  if (a || b ? !wmma_multiplicand_has(type, shape) : !wmma_accumulator_has(type, shape)) {
    decoder.unsupported("this type is not modelled");
  }
  const int rows = b ? shape.k : shape.m;
  const int columns = a ? shape.k : shape.n;
  const int registers = wmma_registers(type, rows * columns, a || b);
  const Decoder::Address address = decoder.address(decoder.operand(stores ? 0 : 1));
  inst.a = address.base;
  inst.imm = address.offset;
  if (decoder.operands() > 2) inst.b = decoder.in(2, kU32);
  std::vector<std::uint32_t> slots;
  take_wmma_fragment(decoder, decoder.operand(stores ? 1 : 0), type, registers, !stores, slots);
  inst.aux = decoder.list(slots);
  inst.small[0] = address.base_bits == 64;
  inst.small[1] = static_cast<std::uint8_t>(rows);
  inst.small[2] = static_cast<std::uint8_t>(columns);
  inst.small[3] = static_cast<std::uint8_t>(wmma_bytes(type) + (decoder.has("col") ? 128 : 0));
  inst.small[4] = static_cast<std::uint8_t>(registers);
  // A generic address counts as an address of global memory (ops/memory.cc).
  inst.kind = stores ? Class::kGlobalStore : Class::kGlobalLoad;
  const bool shared = decoder.has("shared") || decoder.has("shared::cta");
  if (shared) inst.kind = stores ? Class::kSharedStore : Class::kSharedLoad;
  if (shared) return set_access<Space::kShared>(decoder, stores);
  if (decoder.has("global")) return set_access<Space::kGlobal>(decoder, stores);
  set_access<Space::kNone>(decoder, stores);
}

}  // namespace annulus::simulator
