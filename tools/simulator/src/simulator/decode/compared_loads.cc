#include "simulator/decode/compared_loads.h"

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace annulus::simulator {
namespace {

using ptx::Instruction;
using ptx::OperandKind;

bool is_register(const Instruction& instruction, std::size_t operand) {
  return instruction.operands.size() > operand &&
         instruction.operands[operand].kind == OperandKind::kRegister;
}

std::uint32_t reg(const Instruction& instruction, std::size_t operand) {
  return static_cast<std::uint32_t>(instruction.operands[operand].reg);
}

// Sets of registers that moves connect.
class MovedSets {
 public:
  explicit MovedSets(std::size_t registers) : parent_(registers) {
    std::iota(parent_.begin(), parent_.end(), 0u);
  }
  std::uint32_t set_of(std::uint32_t reg) {
    while (parent_[reg] != reg) reg = parent_[reg] = parent_[parent_[reg]];
    return reg;
  }
  void join(std::uint32_t a, std::uint32_t b) { parent_[set_of(a)] = set_of(b); }

 private:
  std::vector<std::uint32_t> parent_;
};

bool is_compare(const Instruction& instruction) {
  return instruction.opcode == "atom" && instruction.has("cas") && is_register(instruction, 2);
}

void mark_in(const ptx::Function& function, Program& program) {
  MovedSets moves(function.registers.size());
  std::vector<std::uint32_t> compared;
  for (const Instruction& instruction : function.code) {
    const bool move =
        instruction.opcode == "mov" && is_register(instruction, 0) && is_register(instruction, 1);
    if (move) moves.join(reg(instruction, 0), reg(instruction, 1));
    if (is_compare(instruction)) compared.push_back(reg(instruction, 2));
  }
  if (compared.empty()) return;
  std::vector<bool> wanted(function.registers.size(), false);
  for (const std::uint32_t one : compared) wanted[moves.set_of(one)] = true;
  for (std::size_t pc = 0; pc < program.code.size(); ++pc) {
    if (program.functions[pc] != &function) continue;
    const Instruction& instruction = *program.instructions[pc];
    Inst& inst = program.code[pc];
    if (instruction.opcode != "ld") continue;
    inst.compared = is_register(instruction, 0) && wanted[moves.set_of(reg(instruction, 0))];
  }
}

}  // namespace

void mark_compared_loads(Program& program) {
  const ptx::Function* last = nullptr;  // the instructions of a function are contiguous
  for (const ptx::Function* function : program.functions) {
    if (function != last && function != nullptr) mark_in(*function, program);
    last = function;
  }
}

}  // namespace annulus::simulator
