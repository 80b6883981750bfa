// Gives slots to the operands of an instruction: registers, immediates, special registers, symbols.

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "simulator/decode/decoder.h"

namespace annulus::simulator {
namespace {

// The width of the register that holds a value of the type. PTX keeps bytes in 16-bit registers.
int register_bits(Type type) { return std::max(16, type.bits * type.count); }

std::optional<Special> find_special(std::string_view name) {
  static const std::map<std::string_view, Special> kSpecials = {
#define VECTOR(name, text) \
  {text ".x", Special::name##X}, {text ".y", Special::name##Y}, {text ".z", Special::name##Z},
#define SCALAR(name, text) {text, Special::name},
#include "simulator/program/specials.def"
  };
  const auto known = kSpecials.find(name);
  if (known == kSpecials.end()) return std::nullopt;
  return known->second;
}

// The bits of a floating-point constant in a register of 32 bits. The parser stores constants in
// fp64.
std::uint32_t float_bits(std::uint64_t bits, Type type) {
  const double real = std::bit_cast<double>(bits);
  if (real != real && type == Type{Type::kFloat, 32}) {
    // A conversion would change the payload of a NaN, so its bits are copied.
    return static_cast<std::uint32_t>(((bits >> 32) & 0x80000000u) | 0x7f800000u |
                                      ((bits >> 29) & 0x7fffffu));
  }
  return std::bit_cast<std::uint32_t>(static_cast<float>(real));
}

}  // namespace

std::uint32_t Decoder::scratch() {
  if (scratch_ == kNoSlot) scratch_ = allocate(256, 64);
  return scratch_;
}

std::uint32_t Decoder::constant(std::uint64_t bits, int bytes) {
  if (bytes < 8) bits &= (std::uint64_t{1} << (8 * bytes)) - 1;
  const auto [place, fresh] = constants_.emplace(std::pair(bits, bytes), 0);
  if (fresh) {
    place->second = allocate(static_cast<std::uint32_t>(bytes) * kLanes, 64);
    program_->constants.push_back({place->second, bits, bytes});
  }
  return place->second;
}

std::uint32_t Decoder::special(const std::string& name, int bytes) {
  const std::optional<Special> known = find_special(name);
  if (!known) unsupported("special register " + name + " is not modelled");
  if (bytes != 4) unsupported("special registers are read as 32 bits");
  const auto [place, fresh] = specials_.emplace(*known, 0);
  if (fresh) {
    place->second = allocate(4 * kLanes, 64);
    program_->specials.push_back({place->second, *known});
  }
  return place->second;
}

std::uint64_t Decoder::symbol(const ptx::Operand& operand, ptx::Space* space, bool* frame) {
  const auto offset = static_cast<std::uint64_t>(operand.offset);
  if (const auto local = frame_->local.find(operand.text); local != frame_->local.end()) {
    *space = ptx::Space::kLocal;
    *frame = true;
    return local->second.offset + offset;
  }
  if (function_->entry) {
    for (std::size_t i = 0; i < function_->parameters.size(); ++i) {
      if (function_->parameters[i].name == operand.text) {
        *space = ptx::Space::kParam;
        return program_->info.parameter_offsets[i] + offset;
      }
    }
  }
  if (const auto found = placement_->shared.find(operand.text); found != placement_->shared.end()) {
    *space = ptx::Space::kShared;
    return found->second + offset;
  }
  if (const auto found = placement_->global.find(operand.text); found != placement_->global.end()) {
    *space = ptx::Space::kGlobal;
    return found->second + offset;
  }
  const auto function = placement_->functions.find(operand.text);
  if (function != placement_->functions.end()) return function->second;
  malformed("unknown name '" + operand.text + "'");
}

const ptx::Register& Decoder::register_of(const ptx::Operand& operand) const {
  return function_->registers[static_cast<std::size_t>(operand.reg)];
}

std::uint32_t Decoder::register_slot(std::int32_t reg) const {
  return frame_->slots[static_cast<std::size_t>(reg)];
}

std::uint32_t Decoder::register_slot(const ptx::Operand& operand, int bits) const {
  const ptx::Register& reg = register_of(operand);
  if (reg.bits != bits) {
    malformed(
        fmt::format("{} has {} bits, but the instruction needs {}", reg.name, reg.bits, bits));
  }
  return register_slot(operand.reg);
}

std::uint32_t Decoder::register_slot_at_least(const ptx::Operand& operand, Type type,
                                              int* bits) const {
  *bits = register_of(operand).bits;
  if (*bits == 1) malformed("a predicate cannot be used here");
  if (*bits < type.bits * type.count) malformed("this register is too narrow");
  return register_slot(operand.reg);
}

void Decoder::note_read(std::int32_t reg) {
  reads_.back().push_back(frame_->first_register + static_cast<std::uint32_t>(reg));
}

void Decoder::note_write(std::int32_t reg) {
  writes_.back().push_back(frame_->first_register + static_cast<std::uint32_t>(reg));
}

std::uint32_t Decoder::in(const ptx::Operand& operand, Type type) {
  const int bits = register_bits(type);
  switch (operand.kind) {
    case ptx::OperandKind::kRegister:
      note_read(operand.reg);
      return register_slot(operand, bits);
    case ptx::OperandKind::kImmediate: {
      std::uint64_t value = operand.bits;
      if (operand.is_float && bits == 32) {
        value = float_bits(value, type);
      } else if (!operand.is_float && type.kind == Type::kFloat && type.bits == 64) {
        malformed("a floating-point immediate is needed");
      }
      return constant(value, bits / 8);
    }
    case ptx::OperandKind::kSpecial:
      return special(operand.text, bits / 8);
    case ptx::OperandKind::kSymbol: {
      ptx::Space space{};
      bool frame = false;
      const std::uint64_t value = symbol(operand, &space, &frame);
      return constant(value, bits / 8);
    }
    default:
      malformed("this kind of operand is not allowed here");
  }
}

std::uint32_t Decoder::out(const ptx::Operand& operand, Type type) {
  if (operand.kind == ptx::OperandKind::kSink) return scratch();
  if (operand.kind != ptx::OperandKind::kRegister) malformed("the destination is not a register");
  note_write(operand.reg);
  return register_slot(operand, register_bits(type));
}

std::uint32_t Decoder::in_wide(const ptx::Operand& operand, Type type, int* bits) {
  if (operand.kind == ptx::OperandKind::kRegister) {
    note_read(operand.reg);
    return register_slot_at_least(operand, type, bits);
  }
  *bits = register_bits(type);
  return in(operand, type);
}

std::uint32_t Decoder::out_wide(const ptx::Operand& operand, Type type, int* bits) {
  if (operand.kind == ptx::OperandKind::kRegister) {
    note_write(operand.reg);
    return register_slot_at_least(operand, type, bits);
  }
  *bits = register_bits(type);
  return out(operand, type);
}

std::uint32_t Decoder::predicate_in(const ptx::Operand& operand, std::uint8_t* negated) {
  *negated = operand.negated;
  if (operand.kind == ptx::OperandKind::kImmediate) {
    const bool value = operand.bits != 0;
    *negated = 0;
    return constant(value ? ~std::uint64_t{0} : 0, 4);
  }
  if (operand.kind != ptx::OperandKind::kRegister) malformed("a predicate is needed");
  note_read(operand.reg);
  return register_slot(operand, 1);
}

std::uint32_t Decoder::predicate_out(const ptx::Operand& operand) {
  if (operand.kind == ptx::OperandKind::kSink) return scratch();
  if (operand.kind != ptx::OperandKind::kRegister) malformed("a predicate is needed");
  note_write(operand.reg);
  return register_slot(operand, 1);
}

std::uint32_t Decoder::matrix_register(const ptx::Operand& operand, bool accumulator,
                                       std::uint32_t* number) {
  if (operand.kind != ptx::OperandKind::kRegister) malformed("a register is needed");
  const std::uint32_t slot = register_slot(operand, 32);
  const std::uint32_t reg = frame_->first_register + static_cast<std::uint32_t>(operand.reg);
  const auto next = static_cast<std::uint32_t>(matrix_registers_.size());
  *number = matrix_registers_.emplace(reg, next).first->second;
  if (accumulator) {
    // A predicate decides whether the product also reads it, so the handler checks that.
    note_write(operand.reg);
    keeps_.back().push_back(reg);
  } else {
    note_read(operand.reg);
  }
  return slot;
}

std::int64_t Decoder::immediate(std::size_t index) {
  const ptx::Operand& found = operand(index);
  if (found.kind != ptx::OperandKind::kImmediate || found.is_float) {
    malformed("an integer constant is needed");
  }
  return static_cast<std::int64_t>(found.bits);
}

Decoder::Address Decoder::address(const ptx::Operand& operand) {
  if (operand.kind != ptx::OperandKind::kAddress) malformed("an address is needed");
  Address result;
  result.offset = operand.offset;
  if (operand.reg >= 0) {
    result.base_bits = register_of(operand).bits;
    if (result.base_bits != 32 && result.base_bits != 64)
      malformed("the base of an address must have 32 or 64 bits");
    note_read(operand.reg);
    result.base = register_slot(operand.reg);
    return result;
  }
  result.base = constant(0, 8);
  if (!operand.text.empty()) {
    result.offset = static_cast<std::int64_t>(symbol(operand, &result.symbol_space, &result.frame));
  }
  return result;
}

std::uint32_t Decoder::list(const std::vector<std::uint32_t>& slots) {
  const auto start = static_cast<std::uint32_t>(program_->slots.size());
  program_->slots.insert(program_->slots.end(), slots.begin(), slots.end());
  return start;
}

}  // namespace annulus::simulator
