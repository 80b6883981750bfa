// wgmma (PTX ISA 9.0, section 9.7.15): its instructions, and the places of its operands in shared
// memory.

#include "simulator/ops/wgmma.h"

#include <array>
#include <cstring>

#include "simulator/machine/cluster.h"
#include "simulator/machine/tensor_map.h"
#include "simulator/ops/handlers.h"

namespace annulus::simulator {
namespace {

// A matrix descriptor:
//   | 62 swizzle | 49 base offset : 3 | 32 stride : 14 | 16 leading : 14 | 0 address : 14 |
// The last three are in units of 16 bytes. Swizzle: 0 none, 1 128 B, 2 64 B, 3 32 B. All other bits
// are zero.
struct Descriptor {
  std::uint32_t address;  // in bytes, like the two strides below
  std::uint32_t leading;
  std::uint32_t stride;
  Swizzle swizzle;
  std::uint32_t base;  // the offset of the swizzle pattern, in bytes from a multiple of its size

  std::uint32_t place(std::uint32_t of) const { return base + swizzled(swizzle, of - base); }
};

constexpr std::uint64_t kReserved = 0x3ff1'c000'c000'c000;
constexpr Swizzle kSwizzles[] = {Swizzle::kNone, Swizzle::k128, Swizzle::k64, Swizzle::k32};

Descriptor take_apart(std::uint64_t bits, const char* which, bool checked) {
  const auto field = [bits](int shift) {
    return static_cast<std::uint32_t>((bits >> shift) & 0x3fff) << 4;
  };
  const Swizzle swizzle = kSwizzles[bits >> 62];
  const auto base = static_cast<std::uint32_t>(bits >> 49 & 7) * 128;
  const Descriptor result{field(0), field(16), field(32), swizzle, base};
  if ((bits & kReserved) != 0) {
    raise(FaultKind::kInvalidOperand,
          fmt::format("descriptor {:#x} of {}: its reserved bits are not zero", bits, which));
  }
  if (swizzle == Swizzle::kNone) {
    if (base == 0) return result;
    raise(FaultKind::kInvalidOperand,
          fmt::format("descriptor {:#x} of {}: a base offset without a swizzle", bits, which));
  }
  // Without a base offset, the address itself gives the position of a chunk in the pattern, as for
  // tensor copies: CUTLASS aligns operands to 128 bytes and leaves the base offset 0. With a base
  // offset, a pattern of 8 rows starts `base` bytes after a multiple of its size, and the matrix
  // starts in the first row of the pattern: base offset = pattern start >> 7 & 7 (9.7.15.5.1.2.2).
  // No kernel of another project is known to use a base offset.
  const std::uint32_t pattern = 8 * swizzle_span(swizzle);
  if (checked && base != 0 && (result.address - base) % pattern >= 128) {
    raise(FaultKind::kInvalidOperand,
          fmt::format("descriptor {:#x} of {}: with base offset {} the matrix has to start in the "
                      "first 128 bytes of a swizzle pattern of {}, and starts at {}",
                      bits, which, base / 128, pattern, result.address));
  }
  return result;
}

// Appends the offsets of an operand's 16-byte chunks, in the order of locate_operands. The layouts
// are in section 9.7.15.5.1.2. K-major: 8 rows form a core matrix, and `stride` is the distance to
// the next 8 rows. MN-major: the meaning of the two strides depends on whether there is a swizzle.
void append_chunks(const Cta& cta, std::uint64_t bits, std::uint32_t rows, bool mn_major,
                   const char* which, std::vector<std::uint32_t>& offsets) {
  const Descriptor d = take_apart(bits, which, cta.checked);
  const std::uint32_t span = swizzle_span(d.swizzle);
  const auto add = [&](std::uint32_t address) {
    const std::uint32_t at = d.place(address);
    const std::uint32_t offset = at - kSharedBase;
    if (at < kSharedBase || offset + 16 > cta.shared.size()) {
      raise(FaultKind::kOutOfBounds,
            fmt::format("descriptor {:#x} of {} reaches shared address {}, but the CTA has {} "
                        "bytes from address {} on",
                        bits, which, at, cta.shared.size(), kSharedBase));
    }
    offsets.push_back(offset);
  };
  if (!mn_major) {
    for (std::uint32_t row = 0; row < rows; ++row) {
      const std::uint32_t start = d.address + row / 8 * d.stride + row % 8 * span;
      add(start);
      // Without a swizzle, the two halves of K are in different core matrices.
      add(start + (d.swizzle == Swizzle::kNone ? d.leading : 16));
    }
    return;
  }
  const std::uint32_t wide = span / 16;  // chunks next to each other along M or N
  for (std::uint32_t k = 0; k < 16; ++k) {
    for (std::uint32_t chunk = 0; chunk < rows / 8; ++chunk) {
      if (d.swizzle == Swizzle::kNone) {
        add(d.address + k / 8 * d.leading + k % 8 * 16 + chunk * d.stride);
      } else {
        add(d.address + k / 8 * d.stride + k % 8 * span + chunk / wide * d.leading +
            chunk % wide * 16);
      }
    }
  }
}

// The value of an operand that has to be the same in all lanes.
std::uint64_t uniform(const Warp& warp, std::uint32_t slot, const char* what) {
  const auto* lanes = warp.lanes<std::uint64_t>(slot);
  for (int lane = 1; lane < kLanes; ++lane) {
    if (lanes[lane] == lanes[0]) continue;
    raise_at(FaultKind::kInvalidOperand, lane, "lanes of a warp name different {}: {:#x}, {:#x}",
             what, lanes[0], lanes[lane]);
  }
  return lanes[0];
}

void require_all(Mask mask) {
  if (mask == kFull) return;
  raise(FaultKind::kInvalidOperand, "wgmma needs all 32 lanes of a warp");
}

void multiply(Warp& warp, const Inst& inst, Mask mask) {
  require_all(mask);
  const MatrixForm& form = warp.cta->program->matrix_forms[inst.aux];
  MatrixProduct product;
  product.inst = &inst;
  product.form = &form;
  product.pc = warp.pc;
  if (!form.a_in_registers) {
    product.a_descriptor = uniform(warp, form.a_descriptor, "descriptors of A");
  }
  product.b_descriptor = uniform(warp, form.b_descriptor, "descriptors of B");
  const Mask scale = warp.predicate(form.scale, form.scale_negated);
  if (scale != 0 && scale != kFull) {
    raise(FaultKind::kInvalidOperand, "lanes of a warp name different values of scale-d");
  }
  product.accumulate = scale != 0;
  const auto member = static_cast<std::size_t>(warp.index % 4);
  // The fragments of A are copied, because another register may get their slot before the product
  // is computed (decode/assign_slots.h).
  for (std::size_t i = 0; i < form.a_slots.size(); ++i) {
    std::memcpy(product.a[member][i], warp.registers + form.a_slots[i], sizeof(product.a[0][0]));
  }
  issue_product(warp, std::move(product));
}

void fence(Warp& warp, const Inst&, Mask mask) {
  require_all(mask);
  ++warp.matrix.fences;
}

void commit(Warp& warp, const Inst&, Mask mask) {
  require_all(mask);
  ++warp.matrix.group;
}

void wait(Warp& warp, const Inst& inst, Mask mask) {
  require_all(mask);
  Cta& cta = *warp.cta;
  if (wait_products(warp, static_cast<std::uint32_t>(inst.imm))) {
    // All lanes execute the fence together, and DeepGEMM uses it as a __syncwarp.
    if (cta.checked && !cta.strict) cta.shadow.tick(warp.index);
    return;
  }
  warp.suspend({Wait::kMatrix, static_cast<std::uint32_t>(warp.index / 4)});
}

struct Input {
  const char* name;
  MatrixInput type;
};
constexpr Input kInputs[] = {{"f16", MatrixInput::kF16},
                             {"bf16", MatrixInput::kBf16},
                             {"tf32", MatrixInput::kTf32},
                             {"e4m3", MatrixInput::kE4m3},
                             {"e5m2", MatrixInput::kE5m2}};

MatrixInput take_input(Decoder& decoder, const std::string& name) {
  for (const Input& input : kInputs) {
    if (name == input.name) return input.type;
  }
  decoder.unsupported("matrices of this type are not modelled");
}

// Reads the shape and the types, which are the modifiers mMnNkK, D, A, B in this order.
void take_types(Decoder& decoder, MatrixForm& form) {
  const std::vector<std::string>& modifiers = decoder.source().modifiers;
  std::size_t at = 0;
  while (at < modifiers.size() && !modifiers[at].starts_with("m64n")) ++at;
  if (at + 4 > modifiers.size() || decoder.has("sp")) decoder.unsupported();
  form.a = take_input(decoder, modifiers[at + 2]);
  form.b = take_input(decoder, modifiers[at + 3]);
  const std::string& shape = modifiers[at];
  form.half_accumulators = modifiers[at + 1] == "f16";
  if (!form.half_accumulators && modifiers[at + 1] != "f32") decoder.unsupported();
  for (form.n = 8; form.n <= 256; form.n += 8) {
    if (shape == fmt::format("m64n{}k{}", form.n, form.k())) break;
  }
  if (form.n > 256) decoder.malformed("there is no such shape");
  const bool bytes = form.a >= MatrixInput::kE4m3 && form.b >= MatrixInput::kE4m3;
  const bool narrow = bytes || form.a == MatrixInput::kF16;
  if ((form.a != form.b && !bytes) || (form.half_accumulators && !narrow)) {
    decoder.malformed("there is no such combination of types");
  }
}

bool take_bit(Decoder& decoder, std::size_t index, std::int64_t no, std::int64_t yes) {
  const std::int64_t value = decoder.immediate(index);
  if (value != no && value != yes) decoder.malformed("a constant has a value that is not allowed");
  return value == yes;
}

void decode_multiply(Decoder& decoder) {
  MatrixForm form;
  take_types(decoder, form);
  const auto take_registers = [&](const ptx::Operand& operand, std::size_t count, bool result) {
    if (operand.kind != ptx::OperandKind::kVector || operand.elements.size() != count) {
      decoder.malformed(fmt::format("{} registers are needed", count));
    }
    for (const ptx::Operand& element : operand.elements) {
      std::uint32_t number = 0;
      (result ? form.d_slots : form.a_slots)
          .push_back(decoder.matrix_register(element, result, &number));
      (result ? form.d_registers : form.a_registers).push_back(number);
    }
  };
  const Type descriptor{Type::kBits, 64};
  take_registers(decoder.operand(0), form.half_accumulators ? form.n / 4 : form.n / 2, true);
  form.a_in_registers = decoder.operand(1).kind == ptx::OperandKind::kVector;
  if (form.a_in_registers) {
    take_registers(decoder.operand(1), 4, false);
  } else {
    form.a_descriptor = decoder.in(1, descriptor);
  }
  form.b_descriptor = decoder.in(2, descriptor);
  form.scale = decoder.predicate_in(decoder.operand(3), &form.scale_negated);
  form.negate = take_bit(decoder, 4, 1, -1) != take_bit(decoder, 5, 1, -1);
  std::size_t next = 6;
  if (form.a <= MatrixInput::kBf16) {
    if (!form.a_in_registers) form.transpose_a = take_bit(decoder, next++, 0, 1);
    form.transpose_b = take_bit(decoder, next++, 0, 1);
  }
  if (next != decoder.operands()) decoder.malformed("the number of operands is wrong");
  Inst& inst = decoder.inst();
  inst.aux = static_cast<std::uint32_t>(decoder.program().matrix_forms.size());
  decoder.program().matrix_forms.push_back(std::move(form));
  decoder.handler(multiply);
}

// The number of chunks of A that the product reads from shared memory. They come before the chunks
// of B.
std::size_t a_chunks(const MatrixForm& form) { return form.a_in_registers ? 0 : 64 * 2; }

}  // namespace

void locate_operands(const Cta& cta, MatrixProduct& product) {
  const MatrixForm& form = *product.form;
  if (!form.a_in_registers) {
    append_chunks(cta, product.a_descriptor, 64, form.transpose_a, "A", product.offsets);
  }
  append_chunks(cta, product.b_descriptor, form.n, form.transpose_b, "B", product.offsets);
}

void begin_product(Cta& cta, int warpgroup, const MatrixProduct& product) {
  const MatrixForm& form = *product.form;
  cta.counts.matrix_flop += std::uint64_t{2} * 64 * form.n * form.k();
  cta.counts.matrix_shared_bytes += 16 * product.offsets.size();
  for (int warp = 1; warp < 4; ++warp) {
    if (product.group[warp] == product.group[0]) continue;
    raise(FaultKind::kInvalidOperand,
          "the warps of the warpgroup have committed different numbers of groups");
  }
  if (!cta.checked) return;
  const std::span<const std::uint32_t> offsets = product.offsets;
  cta.shadow.matrix_read(warpgroup, Warpgroup::kAll, offsets.subspan(a_chunks(form)),
                         product.group[0]);
}

void begin_rows(Cta& cta, int warpgroup, const MatrixProduct& product, std::uint32_t warp) {
  const MatrixForm& form = *product.form;
  if (!cta.checked || form.a_in_registers) return;
  constexpr std::size_t kChunks = 32;  // the chunks of 16 rows
  std::array<std::uint32_t, kChunks> rows;
  for (std::size_t i = 0; i < kChunks; ++i) {
    rows[i] = product.offsets[form.transpose_a ? i / 2 * 8 + 2 * warp + i % 2 : warp * kChunks + i];
  }
  cta.shadow.matrix_read(warpgroup, 1u << warp, rows, product.group[warp]);
}

void decode_wgmma(Decoder& decoder) {
  Inst& inst = decoder.inst();
  inst.kind = Class::kMatrix;
  inst.convergence = Convergence::kWarp;
  if (!decoder.has("sync") || !decoder.has("aligned")) decoder.malformed(".sync.aligned is needed");
  if (decoder.has("mma_async")) return decode_multiply(decoder);
  inst.kind = Class::kBarrier;
  if (decoder.has("fence")) return decoder.handler(fence);
  if (decoder.has("commit_group")) return decoder.handler(commit);
  if (!decoder.has("wait_group")) decoder.unsupported();
  inst.imm = decoder.immediate(0);
  if (inst.imm < 0 || inst.imm > 7) decoder.malformed("the number of groups has to be 0 to 7");
  inst.flow = Flow::kBarrier;
  decoder.handler(wait);
}

}  // namespace annulus::simulator
