#include "simulator/ptx/module.h"

#include <fmt/core.h>

#include <algorithm>

namespace annulus::ptx {
namespace {

std::string print(const Function& function, const Operand& operand);

std::string join(const Function& function, const std::vector<Operand>& operands,
                 const char* separator) {
  std::string text;
  for (const Operand& operand : operands) {
    if (!text.empty()) text += separator;
    text += print(function, operand);
  }
  return text;
}

std::string with_offset(std::string text, std::int64_t offset) {
  text.resize(std::min(text.size(), text.find('#')));  // the name as written in the text (Scopes)
  return offset == 0 ? text : text + fmt::format("{:+}", offset);
}

std::string print(const Function& function, const Operand& operand) {
  const auto reg = [&] { return function.registers[static_cast<std::size_t>(operand.reg)].name; };
  switch (operand.kind) {
    case OperandKind::kRegister:
      return (operand.negated ? "!" : "") + reg();
    case OperandKind::kImmediate:
      return operand.is_float ? fmt::format("0d{:016X}", operand.bits)
                              : fmt::format("{}", static_cast<std::int64_t>(operand.bits));
    case OperandKind::kSymbol:
      return with_offset(operand.text, operand.offset);
    case OperandKind::kSpecial:
      return operand.text;
    case OperandKind::kAddress:
      if (operand.reg >= 0) return "[" + with_offset(reg(), operand.offset) + "]";
      if (!operand.text.empty()) return "[" + with_offset(operand.text, operand.offset) + "]";
      return fmt::format("[{}]", operand.offset);
    case OperandKind::kVector:
      return "{" + join(function, operand.elements, ", ") + "}";
    case OperandKind::kPair:
      return join(function, operand.elements, "|");
    case OperandKind::kList:
      return "(" + join(function, operand.elements, ", ") + ")";
    case OperandKind::kLabel:
      return function.labels[static_cast<std::size_t>(operand.label)].name;
    case OperandKind::kSink:
      return "_";
  }
  return "";
}

}  // namespace

bool Instruction::has(const char* modifier) const {
  return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end();
}

std::string Instruction::name() const {
  std::string text = opcode;
  for (const std::string& modifier : modifiers) text += "." + modifier;
  return text;
}

const std::string* Module::file_name(int number) const {
  for (const auto& [index, name] : files) {
    if (index == number) return &name;
  }
  return nullptr;
}

std::string to_string(const Function& function, const Instruction& instruction) {
  std::string text;
  if (instruction.guard >= 0) {
    text = fmt::format("@{}{} ", instruction.guard_negated ? "!" : "",
                       function.registers[static_cast<std::size_t>(instruction.guard)].name);
  }
  text += instruction.name();
  const std::string operands = join(function, instruction.operands, ", ");
  return operands.empty() ? text : text + " " + operands;
}

}  // namespace annulus::ptx
