#include "simulator/ops/wmma.h"

namespace annulus::simulator {
namespace {

// The first three are the shapes of 8-bit and 16-bit multiplicands.
constexpr WmmaShape kShapes[] = {{"m16n16k16", 16, 16, 16},
                                 {"m8n32k16", 8, 32, 16},
                                 {"m32n8k16", 32, 8, 16},
                                 {"m16n16k8", 16, 16, 8},
                                 {"m8n8k4", 8, 8, 4}};

}  // namespace

const WmmaShape& wmma_shape(const Decoder& decoder) {
  for (const WmmaShape& shape : kShapes) {
    if (decoder.has(shape.name)) return shape;
  }
  decoder.unsupported("this shape is not modelled");
}

bool wmma_multiplicand_has(std::string_view type, const WmmaShape& shape) {
  if (type == "tf32") return &shape == &kShapes[3];
  if (type == "f64") return &shape == &kShapes[4];
  return (type == "f16" || type == "bf16" || type == "s8" || type == "u8") && shape.k == 16;
}
bool wmma_accumulator_has(std::string_view type, const WmmaShape& shape) {
  if (type == "f64") return shape.k == 4;
  if (type == "f32") return shape.k >= 8;
  return (type == "f16" || type == "s32") && shape.k == 16;
}

int wmma_bytes(std::string_view type) {
  if (type == "f64") return 8;
  if (type == "f32" || type == "s32" || type == "tf32") return 4;
  return type == "f16" || type == "bf16" ? 2 : 1;
}

int wmma_registers(std::string_view type, int elements, bool multiplicand) {
  if (multiplicand && type == "f16") return 8;
  return elements * wmma_bytes(type) / (type == "f64" ? 256 : 128);
}

void take_wmma_fragment(Decoder& decoder, const ptx::Operand& operand, std::string_view type,
                        int registers, bool output, std::vector<std::uint32_t>& slots) {
  std::vector<ptx::Operand> parts = {operand};
  if (operand.kind == ptx::OperandKind::kVector) parts = operand.elements;
  if (parts.size() != static_cast<std::size_t>(registers)) {
    decoder.malformed("a fragment has the wrong number of registers");
  }
  const Type word{Type::kBits, type == "f64" ? 64 : 32};
  for (const ptx::Operand& part : parts) {
    slots.push_back(output ? decoder.out(part, word) : decoder.in(part, word));
  }
}

void require_wmma_warp(Mask mask) {
  if (mask != kFull) {
    raise_at(FaultKind::kInvalidOperand, lowest_lane(mask),
             "wmma needs all 32 lanes, but only lanes {:#010x} execute it", mask);
  }
}

// Formats below eight bits, and rounding modes of f64 other than .rn, are not supported.
void decode_wmma(Decoder& decoder) {
  decoder.inst().convergence = Convergence::kWarp;
  if (decoder.has("mma")) return decode_wmma_product(decoder);
  decode_wmma_access(decoder, decoder.has("store"));
}

}  // namespace annulus::simulator
