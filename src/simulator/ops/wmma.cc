// wmma.load, wmma.store and wmma.mma (PTX ISA 9.0, sections 9.7.14.4.3 to 9.7.14.4.5).
//
// The manual leaves open which lane holds which elements. Here a fragment is its matrix row after
// row, whichever way it lies in memory: register r of the 32 lanes, lane 0 first, is the r-th run
// of 128 bytes (256 for f64) of
//
//   A: m rows of k elements    B: k rows of n elements    C, D: m rows of n elements
//
// Fragments of f16 have eight registers for A and B in every shape, more than some of them need:
// the registers behind the last one that is needed hold the matrix once or three times more, so
// that a program which does the same to all elements of a fragment keeps the copies alike. Only the
// first copy is multiplied.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "simulator/ops/access.h"
#include "simulator/ops/handlers.h"
#include "simulator/ops/shared_address.h"

namespace annulus::simulator {
namespace {

using ptx::Space;

constexpr std::size_t kMaxBytes = 1024;  // of a matrix

// A matrix as the Inst of a load or store has it: base slot a, offset imm, the slot of the stride b
// or none, aux the first of the registers' slots, small[0] base has 64 bits, small[1] rows,
// small[2] columns, small[3] bytes of an element, plus 128 where columns are contiguous in memory,
// small[4] registers.
struct WmmaMatrix {
  explicit WmmaMatrix(const Inst& inst)
      : rows(inst.small[1]),
        columns(inst.small[2]),
        element_bytes(inst.small[3] & 127u),
        by_columns(inst.small[3] >= 128),
        registers(inst.small[4]) {}

  std::uint32_t bytes() const { return rows * columns * element_bytes; }
  std::uint32_t register_bytes() const { return element_bytes == 8 ? 8 : 4; }
  std::uint32_t lines() const { return by_columns ? columns : rows; }  // rows or columns in memory
  std::uint32_t line_length() const { return by_columns ? rows : columns; }  // in elements
  std::uint32_t fragment_bytes() const { return registers * register_bytes(); }
  // Memory is accessed in pieces of this size, one for a lane. They divide every line.
  std::uint32_t piece_bytes() const { return std::min(16u, fragment_bytes()); }

  std::uint32_t rows;
  std::uint32_t columns;
  std::uint32_t element_bytes;
  bool by_columns;
  std::uint32_t registers;
};

void require_warp(Mask mask) {
  if (mask != kFull) {
    raise_at(FaultKind::kInvalidOperand, lowest_lane(mask),
             "wmma needs all 32 lanes, the warp has {:#010x}", mask);
  }
}

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
               "wmma needs the same address in all lanes, {:#x} is not that of lane 0, {:#x}",
               addresses[static_cast<std::size_t>(lane)], addresses[0]);
    }
    if (strides != nullptr && strides[lane] != strides[0]) {
      raise_at(FaultKind::kInvalidOperand, lane,
               "wmma needs the same stride in all lanes, {} is not that of lane 0, {}",
               strides[lane], strides[0]);
    }
  }
  // The manual wants every row at a multiple of the fragment's size. The CUDA Programming Guide
  // allows strides of 16 bytes, which the pieces need, but no such address of the first row.
  if (warp.cta->strict) require_aligned(1, addresses, matrix.fragment_bytes());
  const std::uint64_t stride = strides == nullptr ? matrix.line_length() : strides[0];
  return {addresses[0], stride * matrix.element_bytes};
}

// The space that a generic address is in.
template <Space kSpace>
bool in_shared(const MatrixPlace& place) {
  if constexpr (kSpace != Space::kNone) return kSpace == Space::kShared;
  const std::uint64_t window = place.address / kWindowBytes;
  if (window == 1 && names_cta(place.address)) {
    raise(FaultKind::kUnsupported, "a matrix in the shared memory of another CTA");
  }
  if (window == 2 || window == 3) {
    raise(FaultKind::kInvalidOperand,
          "wmma needs a matrix in global or shared memory, not in that of a thread or a parameter",
          0);
  }
  return window == 1;
}

// Calls visit(mask, addresses, first byte) for the pieces of the matrix, 32 at a time. The bytes
// are counted in the lines as they lie in memory, without what a stride leaves out.
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

// Which lane reads which element is open, so in shared memory all of them together read each piece,
// as those of ldmatrix do. In global memory a lane reads its pieces.
template <Space kSpace, bool kChecked>
void load_matrix(Warp& warp, const Inst& inst, Mask mask) {
  require_warp(mask);
  Cta& cta = *warp.cta;
  const WmmaMatrix matrix(inst);
  const MatrixPlace place = place_of(warp, inst, matrix);
  const bool shared = in_shared<kSpace>(place);
  const std::uint32_t piece = matrix.piece_bytes();
  std::byte lines[kMaxBytes];
  each_piece(matrix, place, [&](Mask lanes, const LaneAddresses& addresses, std::uint32_t first) {
    LanePointers pointers;
    if (shared) {
      reach_shared<kChecked>(warp, lanes, addresses, piece, pointers);
    } else {
      reach_global<kChecked>(warp, lanes, addresses, piece, Access::kLoad, AccessKind::kRead,
                             pointers);
      if (kChecked) note_load(warp, lanes, addresses, piece, MemoryOrder::kWeak);
    }
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

// In shared memory a piece is recorded as written by several lanes, as those of stmatrix are. In
// global memory the lanes write their pieces one after another.
template <Space kSpace, bool kChecked>
void store_matrix(Warp& warp, const Inst& inst, Mask mask) {
  require_warp(mask);
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
    if (shared) {
      reach_shared<kChecked>(warp, lanes, addresses, piece, pointers);
    } else {
      reach_global<kChecked>(warp, lanes, addresses, piece, Access::kStore, AccessKind::kWrite,
                             pointers);
    }
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

// --- wmma.mma ---

struct Tensor32 {};  // tf32

// Reads `count` elements of a fragment, widened to the type in which they are multiplied.
template <typename T, typename To>
void read_fragment(const Warp& warp, const std::uint32_t* slots, std::size_t count, To* to) {
  constexpr std::size_t kRun = std::is_same_v<T, double> ? 256 : 128;
  using Element = std::conditional_t<std::is_same_v<T, Tensor32>, std::uint32_t, T>;
  constexpr std::size_t kPerRun = kRun / sizeof(Element);
  for (std::size_t first = 0; first < count; first += kPerRun) {
    Element elements[kPerRun];
    std::memcpy(elements, warp.registers + *slots++, kRun);
    for (std::size_t i = 0; i < kPerRun; ++i) {
      if constexpr (std::is_same_v<T, Tensor32>) {
        to[first + i] = std::bit_cast<float>(elements[i] & 0xffffe000u);
      } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Brain>) {
        to[first + i] = widen(elements[i]);
      } else {
        to[first + i] = static_cast<To>(elements[i]);
      }
    }
  }
}

// Writes what read_fragment reads, one to one.
template <typename T>
void write_fragment(const Warp& warp, const std::uint32_t* slots, std::size_t count,
                    const T* from) {
  constexpr std::size_t kRun = std::is_same_v<T, double> ? 256 : 128;
  for (std::size_t done = 0; done < count * sizeof(T); done += kRun) {
    std::memcpy(warp.registers + *slots++, reinterpret_cast<const std::byte*>(from) + done, kRun);
  }
}

inline float multiply_add(float a, float b, float c) { return std::fma(a, b, c); }
inline double multiply_add(double a, double b, double c) { return std::fma(a, b, c); }
inline std::int32_t multiply_add(std::int32_t a, std::int32_t b, std::int32_t c) {
  return a * b + c;
}

// sum += a b, k ascending.
template <int kN, typename T>
void add_product(const T* a, const T* b, T* sum, int m, int k) {
  for (int row = 0; row < m; ++row) {
    T* to = sum + row * kN;
    for (int i = 0; i < k; ++i) {
      const T factor = a[row * k + i];
      for (int column = 0; column < kN; ++column) {
        to[column] = multiply_add(factor, b[i * kN + column], to[column]);
      }
    }
  }
}

template <typename T>
void add_product(const T* a, const T* b, T* sum, int m, int n, int k) {
  switch (n) {
    case 8:
      return add_product<8>(a, b, sum, m, k);
    case 16:
      return add_product<16>(a, b, sum, m, k);
    default:
      return add_product<32>(a, b, sum, m, k);
  }
}

// The registers of a fragment of A or B.
template <typename T>
constexpr std::size_t registers_of(std::size_t elements) {
  if (std::is_same_v<T, Half>) return 8;
  if (std::is_same_v<T, double>) return elements / kLanes;
  return elements * (std::is_same_v<T, Tensor32> ? 4 : sizeof(T)) / 128;
}

// In the Inst of a product: aux the slots of d, a, b and c; small[0] to [2] m, n and k; small[3]
// flags.
enum MmaFlag : std::uint8_t { kNarrowD = 1, kNarrowC = 2, kSaturated = 4 };

// Sources are read before d is written, so they may be the same registers.
template <typename T>
void multiply_fragments(Warp& warp, const Inst& inst, Mask mask) {
  constexpr bool kInteger = std::is_integral_v<T>;
  constexpr bool kDouble = std::is_same_v<T, double>;
  using Sum = std::conditional_t<kInteger, std::int32_t, std::conditional_t<kDouble, T, float>>;
  require_warp(mask);
  const int m = inst.small[0];
  const int n = inst.small[1];
  const int k = inst.small[2];
  const auto count = static_cast<std::size_t>(m * n);
  const auto count_a = static_cast<std::size_t>(m * k);
  const auto count_b = static_cast<std::size_t>(k * n);
  const std::uint32_t* d = &warp.cta->program->slots[inst.aux];
  const std::uint32_t* a = d + ((inst.small[3] & kNarrowD) ? count / 64 : count / 32);
  const std::uint32_t* b = a + registers_of<T>(count_a);
  const std::uint32_t* c = b + registers_of<T>(count_b);
  Sum elements_a[512];
  Sum elements_b[512];
  Sum sum[256];
  read_fragment<T>(warp, a, count_a, elements_a);
  read_fragment<T>(warp, b, count_b, elements_b);
  if (inst.small[3] & kNarrowC) {
    read_fragment<Half>(warp, c, count, sum);
  } else {
    read_fragment<Sum>(warp, c, count, sum);
  }
  warp.cta->counts.matrix_flop += std::uint64_t{2} * count * static_cast<std::uint64_t>(k);
  if constexpr (kInteger) {
    // No sum of 16 products overflows; with c it may.
    std::int32_t products[256] = {};
    add_product(elements_a, elements_b, products, m, n, k);
    constexpr std::int64_t kLeast = std::numeric_limits<std::int32_t>::min();
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t exact = std::int64_t{sum[i]} + products[i];
      sum[i] = static_cast<std::int32_t>(
          (inst.small[3] & kSaturated) ? std::clamp(exact, kLeast, kMost) : exact);
    }
  } else {
    add_product(elements_a, elements_b, sum, m, n, k);
  }
  if constexpr (std::is_same_v<T, Half>) {
    if (inst.small[3] & kNarrowD) {
      Half narrowed[256];
      for (std::size_t i = 0; i < count; ++i) narrowed[i] = narrow<Half>(sum[i]);
      return write_fragment(warp, d, count, narrowed);
    }
  }
  write_fragment(warp, d, count, sum);
}

// --- Decoding ---

struct WmmaShape {
  const char* name;
  int m, n, k;
};
// The first three are those of 8-bit and 16-bit multiplicands.
constexpr WmmaShape kShapes[] = {{"m16n16k16", 16, 16, 16},
                                 {"m8n32k16", 8, 32, 16},
                                 {"m32n8k16", 32, 8, 16},
                                 {"m16n16k8", 16, 16, 8},
                                 {"m8n8k4", 8, 8, 4}};

const WmmaShape& shape_of(const Decoder& decoder) {
  for (const WmmaShape& shape : kShapes) {
    if (decoder.has(shape.name)) return shape;
  }
  decoder.unsupported("this shape is not modelled");
}

// Whether a multiplicand of this type, or an accumulator, has the shape.
bool multiplicand_has(std::string_view type, const WmmaShape& shape) {
  if (type == "tf32") return &shape == &kShapes[3];
  if (type == "f64") return &shape == &kShapes[4];
  return (type == "f16" || type == "bf16" || type == "s8" || type == "u8") && shape.k == 16;
}
bool accumulator_has(std::string_view type, const WmmaShape& shape) {
  if (type == "f64") return shape.k == 4;
  if (type == "f32") return shape.k >= 8;
  return (type == "f16" || type == "s32") && shape.k == 16;
}

int bytes_of(std::string_view type) {
  if (type == "f64") return 8;
  if (type == "f32" || type == "s32" || type == "tf32") return 4;
  return type == "f16" || type == "bf16" ? 2 : 1;
}

int registers_for(std::string_view type, int elements, bool multiplicand) {
  if (multiplicand && type == "f16") return 8;
  return elements * bytes_of(type) / (type == "f64" ? 256 : 128);
}

// Takes the registers of a fragment.
void take_fragment(Decoder& decoder, const ptx::Operand& operand, std::string_view type,
                   int registers, bool output, std::vector<std::uint32_t>& slots) {
  std::vector<ptx::Operand> parts = {operand};
  if (operand.kind == ptx::OperandKind::kVector) parts = operand.elements;
  if (parts.size() != static_cast<std::size_t>(registers)) {
    decoder.malformed("a fragment has another number of registers");
  }
  const Type word{Type::kBits, type == "f64" ? 64 : 32};
  for (const ptx::Operand& part : parts) {
    slots.push_back(output ? decoder.out(part, word) : decoder.in(part, word));
  }
}

void decode_wmma_access(Decoder& decoder, bool stores) {
  Inst& inst = decoder.inst();
  const WmmaShape& shape = shape_of(decoder);
  const std::string_view type = decoder.source().modifiers.back();
  const bool a = decoder.has("a");
  const bool b = decoder.has("b");
  if (a || b ? !multiplicand_has(type, shape) : !accumulator_has(type, shape)) {
    decoder.unsupported("this type is not modelled");
  }
  const int rows = b ? shape.k : shape.m;
  const int columns = a ? shape.k : shape.n;
  const int registers = registers_for(type, rows * columns, a || b);
  const Decoder::Address address = decoder.address(decoder.operand(stores ? 0 : 1));
  inst.a = address.base;
  inst.imm = address.offset;
  if (decoder.operands() > 2) inst.b = decoder.in(2, kU32);
  std::vector<std::uint32_t> slots;
  take_fragment(decoder, decoder.operand(stores ? 1 : 0), type, registers, !stores, slots);
  inst.aux = decoder.list(slots);
  inst.small[0] = address.base_bits == 64;
  inst.small[1] = static_cast<std::uint8_t>(rows);
  inst.small[2] = static_cast<std::uint8_t>(columns);
  inst.small[3] = static_cast<std::uint8_t>(bytes_of(type) + (decoder.has("col") ? 128 : 0));
  inst.small[4] = static_cast<std::uint8_t>(registers);
  // A generic address counts as one of global memory (ops/memory.cc).
  inst.kind = stores ? Class::kGlobalStore : Class::kGlobalLoad;
  if (decoder.has("shared") || decoder.has("shared::cta")) {
    inst.kind = stores ? Class::kSharedStore : Class::kSharedLoad;
    return stores ? decoder.handler(store_matrix<Space::kShared, false>,
                                    store_matrix<Space::kShared, true>)
                  : decoder.handler(load_matrix<Space::kShared, false>,
                                    load_matrix<Space::kShared, true>);
  }
  if (decoder.has("global")) {
    return stores ? decoder.handler(store_matrix<Space::kGlobal, false>,
                                    store_matrix<Space::kGlobal, true>)
                  : decoder.handler(load_matrix<Space::kGlobal, false>,
                                    load_matrix<Space::kGlobal, true>);
  }
  stores ? decoder.handler(store_matrix<Space::kNone, false>, store_matrix<Space::kNone, true>)
         : decoder.handler(load_matrix<Space::kNone, false>, load_matrix<Space::kNone, true>);
}

// The types come last: those of d and c where A and B are of f16, else those of d, a, b and c.
void decode_wmma_product(Decoder& decoder) {
  Inst& inst = decoder.inst();
  inst.kind = Class::kMatrix;
  const WmmaShape& shape = shape_of(decoder);
  std::vector<std::string_view> types;
  bool past_shape = false;
  bool saturated = false;
  for (const std::string& modifier : decoder.source().modifiers) {
    if (modifier == "satfinite") {
      saturated = true;
    } else if (past_shape && modifier != "rn") {
      types.emplace_back(modifier);
    }
    past_shape = past_shape || modifier == shape.name;
  }
  if (types.size() == 2) types = {types[0], "f16", "f16", types[1]};
  if (types.size() != 4) decoder.unsupported("these types are not modelled");
  const std::string_view d = types[0];
  const std::string_view a = types[1];
  const std::string_view c = types[3];
  const bool integers = a == "s8" || a == "u8";
  const bool halves = a == "f16";
  const std::string_view sum = integers ? "s32" : a == "f64" ? "f64" : "f32";
  const auto sums = [&](std::string_view type) { return type == sum || (halves && type == "f16"); };
  if (a != types[2] || !multiplicand_has(a, shape) || !sums(d) || !sums(c) ||
      (saturated && !integers)) {
    decoder.unsupported("these types are not modelled");
  }
  std::vector<std::uint32_t> slots;
  const auto take = [&](std::size_t index, std::string_view type, int elements) {
    const bool multiplicand = index == 1 || index == 2;
    take_fragment(decoder, decoder.operand(index), type,
                  registers_for(type, elements, multiplicand), index == 0, slots);
  };
  take(0, d, shape.m * shape.n);
  take(1, a, shape.m * shape.k);
  take(2, a, shape.k * shape.n);
  take(3, c, shape.m * shape.n);
  inst.aux = decoder.list(slots);
  inst.small[0] = static_cast<std::uint8_t>(shape.m);
  inst.small[1] = static_cast<std::uint8_t>(shape.n);
  inst.small[2] = static_cast<std::uint8_t>(shape.k);
  inst.small[3] = static_cast<std::uint8_t>(
      (d == "f16" ? kNarrowD : 0) | (c == "f16" ? kNarrowC : 0) | (saturated ? kSaturated : 0));
  decoder.handler(a == "f16"    ? multiply_fragments<Half>
                  : a == "bf16" ? multiply_fragments<Brain>
                  : a == "tf32" ? multiply_fragments<Tensor32>
                  : a == "f64"  ? multiply_fragments<double>
                  : a == "s8"   ? multiply_fragments<std::int8_t>
                                : multiply_fragments<std::uint8_t>);
}

}  // namespace

// Not modelled are the formats below eight bits, and the rounding modes of f64 other than .rn.
void decode_wmma(Decoder& decoder) {
  decoder.inst().convergence = Convergence::kWarp;
  if (decoder.has("mma")) return decode_wmma_product(decoder);
  decode_wmma_access(decoder, decoder.has("store"));
}

}  // namespace annulus::simulator
