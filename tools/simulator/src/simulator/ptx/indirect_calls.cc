#include "simulator/ptx/indirect_calls.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace annulus::ptx {
namespace {

// With more instructions than this, calls are not expanded. Code of compilers has a few hundred.
constexpr std::size_t kMaxAdded = 1u << 20;

struct Signature {
  std::vector<std::uint64_t> arguments;  // sizes in bytes
  std::vector<std::uint64_t> results;
  auto operator<=>(const Signature&) const = default;
};

// The operands of call: [(results),] function [, (arguments)] [, prototype].
struct Call {
  std::size_t callee = 0;  // index of the operand
  bool indirect = false;
  const std::vector<Operand>* results = nullptr;  // null if there are none
  const std::vector<Operand>* arguments = nullptr;
};

Call read_call(const Instruction& instruction) {
  Call call;
  const std::vector<Operand>& operands = instruction.operands;
  const auto is_list = [&](std::size_t i) {
    return i < operands.size() && operands[i].kind == OperandKind::kList;
  };
  if (is_list(0)) call.results = &operands[call.callee++].elements;
  call.indirect =
      call.callee < operands.size() && operands[call.callee].kind == OperandKind::kRegister;
  if (is_list(call.callee + 1)) call.arguments = &operands[call.callee + 1].elements;
  return call;
}

std::vector<std::uint64_t> sizes_of(const std::vector<Variable>& variables) {
  std::vector<std::uint64_t> sizes;
  for (const Variable& variable : variables) sizes.push_back(variable.bytes);
  return sizes;
}

class Expansion {
 public:
  explicit Expansion(Module& module) : module_(module) {}

  void run() {
    if (!any_indirect()) return;
    find_targets();
    find_edges();
    for (Function& function : module_.functions) expand(function);
  }

 private:
  using Names = std::set<std::string_view>;

  bool any_indirect() const {
    return std::ranges::any_of(module_.functions, [](const Function& function) {
      return std::ranges::any_of(function.code, [](const Instruction& instruction) {
        return instruction.opcode == "call" && read_call(instruction).indirect;
      });
    });
  }

  // Finds the functions whose address is an initial value, or an operand of anything but a call.
  void find_targets() {
    Names taken;
    for (const Variable& variable : module_.variables) {
      for (const Relocation& relocation : variable.relocations) taken.insert(relocation.symbol);
    }
    for (const Function& function : module_.functions) {
      for (const Instruction& instruction : function.code) {
        if (instruction.opcode == "call") continue;
        for (const Operand& operand : instruction.operands) {
          if (operand.kind == OperandKind::kSymbol) taken.insert(operand.text);
        }
      }
    }
    for (const Function& function : module_.functions) {
      if (function.entry || function.declaration || !taken.contains(function.name)) continue;
      targets_[{sizes_of(function.parameters), sizes_of(function.results)}].push_back(
          function.name);
    }
  }

  // The functions that a call through a register may call.
  const std::vector<std::string_view>& targets_of(const Function& caller, const Call& call) {
    static const std::vector<std::string_view> kNone;
    const auto sizes = [&](const std::vector<Operand>* operands) {
      std::vector<std::uint64_t> found;
      for (std::size_t i = 0; operands != nullptr && i < operands->size(); ++i) {
        found.push_back(bytes_of(caller, (*operands)[i].text));
      }
      return found;
    };
    const auto found = targets_.find({sizes(call.arguments), sizes(call.results)});
    return found == targets_.end() ? kNone : found->second;
  }

  // The bytes of a variable, or 0 if there is none. No parameter has the size 0.
  std::uint64_t bytes_of(const Function& function, std::string_view variable) {
    auto [place, fresh] = sizes_.try_emplace(&function);
    for (std::size_t i = 0; fresh && i < function.variables.size(); ++i) {
      place->second[function.variables[i].name] = function.variables[i].bytes;
    }
    const auto found = place->second.find(variable);
    return found == place->second.end() ? 0 : found->second;
  }

  // All names refer to Function::name, which is not moved.
  void find_edges() {
    Names names;
    for (const Function& function : module_.functions) names.insert(function.name);
    for (const Function& function : module_.functions) {
      Names& to = calls_[function.name];
      for (const Instruction& instruction : function.code) {
        if (instruction.opcode != "call") continue;
        const Call call = read_call(instruction);
        if (call.indirect) {
          const auto& targets = targets_of(function, call);
          to.insert(targets.begin(), targets.end());
        } else if (call.callee < instruction.operands.size()) {
          const auto callee = names.find(instruction.operands[call.callee].text);
          if (callee != names.end()) to.insert(*callee);
        }
      }
    }
  }

  bool leads_to(std::string_view from, std::string_view to) const {
    Names seen = {from};
    std::vector<std::string_view> work = {from};
    while (!work.empty()) {
      const std::string_view at = work.back();
      work.pop_back();
      if (at == to) return true;
      const auto callees = calls_.find(at);
      if (callees == calls_.end()) continue;
      for (const std::string_view callee : callees->second) {
        if (seen.insert(callee).second) work.push_back(callee);
      }
    }
    return false;
  }

  void expand(Function& function) {
    std::vector<Instruction> code;
    // the new index of each instruction
    std::vector<std::uint32_t> moved(function.code.size() + 1);
    std::map<std::string_view, bool> circular;
    Operand hit;  // a predicate: the call goes to this function
    Operand miss;
    for (std::size_t i = 0; i < function.code.size(); ++i) {
      moved[i] = static_cast<std::uint32_t>(code.size());
      Instruction& original = function.code[i];
      const Call call = original.opcode == "call" ? read_call(original) : Call{};
      std::vector<std::string_view> targets;
      if (call.indirect) targets = targets_of(function, call);
      std::erase_if(targets, [&](std::string_view target) {
        const auto [place, fresh] = circular.try_emplace(target, false);
        if (fresh) place->second = leads_to(target, function.name);
        return place->second;
      });
      added_ += 3 * targets.size();
      if (targets.empty() || added_ > kMaxAdded) {
        code.push_back(std::move(original));
        continue;
      }
      if (hit.kind == OperandKind::kSink) {
        hit = predicate(function);
        miss = predicate(function);
      }
      Operand guard = miss;
      guard.reg = original.guard;
      guard.negated = original.guard_negated;
      for (std::size_t j = 0; j < targets.size(); ++j) {
        Operand target;
        target.kind = OperandKind::kSymbol;
        target.text = targets[j];
        const Operand& address = original.operands[call.callee];
        code.push_back(compare(original, "eq", hit, address, target, guard));
        code.push_back(compare(original, "ne", miss, address, target, j == 0 ? guard : miss));
        Instruction direct = original;
        direct.operands[call.callee] = target;
        direct.guard = hit.reg;
        direct.guard_negated = false;
        code.push_back(std::move(direct));
      }
      original.guard = miss.reg;
      original.guard_negated = false;
      code.push_back(std::move(original));
    }
    moved.back() = static_cast<std::uint32_t>(code.size());
    for (Label& label : function.labels) label.target = moved[label.target];
    function.code = std::move(code);
  }

  static Operand predicate(Function& function) {
    Operand operand;
    operand.kind = OperandKind::kRegister;
    operand.reg = static_cast<std::int32_t>(function.registers.size());
    function.registers.push_back({"call", "pred", 1});
    return operand;
  }

  // setp.how[.and].u64 to, address, target[, with]. `with` may be absent.
  static Instruction compare(const Instruction& place, const char* how, const Operand& to,
                             const Operand& address, const Operand& target, const Operand& with) {
    Instruction result;
    result.line = place.line;
    result.location = place.location;
    result.opcode = "setp";
    result.modifiers = {how, "u64"};
    result.operands = {to, address, target};
    if (with.reg >= 0) {
      result.modifiers = {how, "and", "u64"};
      result.operands.push_back(with);
    }
    return result;
  }

  Module& module_;
  std::map<Signature, std::vector<std::string_view>> targets_;
  std::map<std::string_view, Names> calls_;  // by caller
  std::map<const Function*, std::map<std::string_view, std::uint64_t>> sizes_;
  std::size_t added_ = 0;
};

}  // namespace

void expand_indirect_calls(Module& module) { Expansion(module).run(); }

}  // namespace annulus::ptx
