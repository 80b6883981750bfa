// Functions and calls. The frame of a function holds its registers, local variables and parameters.
// A call copies between two frames.

#include <algorithm>

#include "base/fail.h"
#include "base/math.h"
#include "simulator/decode/decoder.h"

namespace annulus::simulator {
namespace {

constexpr std::uint32_t kMaxLocalBytes = 512 * 1024;  // limit of a thread (CUDA programming guide)

}  // namespace

// Gives a function its registers and its frame of local variables and call parameters. There is one
// frame for each function, not for each call, because recursion is refused.
void Decoder::place_function(const ptx::Function& function) {
  Frame& frame = frames_[function.name];
  frame.first_register = register_count_;
  register_count_ += static_cast<std::uint32_t>(function.registers.size());
  for (const ptx::Register& reg : function.registers) {
    const auto bytes = static_cast<std::uint32_t>(reg.bits == 1 ? 4 : reg.bits / 8 * kLanes);
    if (reg.bits != 1 && reg.bits != 16 && reg.bits != 32 && reg.bits != 64) {
      base::fail(ErrorCode::kUnsupported, "function {}: registers of {} bits ({})", function.name,
                 reg.bits, reg.name);
    }
    frame.slots.push_back(assigned_.empty() ? allocate(bytes, reg.bits == 1 ? 4 : 64)
                                            : assigned_[frame.slots.size()]);
  }
  const auto place = [&](const ptx::Variable& variable) {
    std::uint64_t end = program_->info.local_bytes;
    end = base::round_up(end, variable.alignment);
    frame.local[variable.name] = {static_cast<std::uint32_t>(end),
                                  static_cast<std::uint32_t>(variable.bytes)};
    end += variable.bytes;
    if (end > kMaxLocalBytes) {
      base::fail(ErrorCode::kUnsupported, "function {}: more than {} bytes of local memory",
                 function.name, kMaxLocalBytes);
    }
    program_->info.local_bytes = static_cast<std::uint32_t>(end);
  };
  for (const ptx::Variable& variable : function.variables) {
    if (variable.space == ptx::Space::kLocal || variable.space == ptx::Space::kParam) {
      place(variable);
    }
  }
  if (!function.entry) {
    for (const ptx::Variable& variable : function.parameters) place(variable);
    for (const ptx::Variable& variable : function.results) place(variable);
  }
}

// call.uni (results), function, (arguments). Results and arguments are .param variables, which
// run_warp.cc copies between the frames of caller and callee. Until the end of Decoder::run,
// Inst::target is the callee's index in order_, because its first instruction is not known yet.
void Decoder::decode_call() {
  std::size_t at = 0;
  std::vector<ptx::Operand> results;
  if (operand(at).kind == ptx::OperandKind::kList) results = operand(at++).elements;
  const ptx::Operand& name = operand(at++);
  if (name.kind != ptx::OperandKind::kSymbol) {
    unsupported(
        "the address does not belong to a function of this module that has such parameters and "
        "does not "
        "call this function again (recursion is not modelled)");
  }
  std::vector<ptx::Operand> arguments;
  if (at < operands()) arguments = operand(at).elements;
  const ptx::Function* callee = nullptr;
  for (const ptx::Function& function : module_->functions) {
    if (function.name == name.text && !function.declaration) callee = &function;
  }
  if (callee == nullptr) return decode_system_call(name.text, arguments, results);
  if (arguments.size() != callee->parameters.size() || results.size() != callee->results.size()) {
    malformed("the call and the function have different numbers of arguments or results");
  }
  if (!frames_.contains(callee->name)) {
    place_function(*callee);
    order_.push_back(callee);
  }
  calls_[function_].insert(callee);
  const Frame& frame = frames_.at(callee->name);
  // Triples (from, to, bytes): first the arguments, then the results, which are copied back on
  // return. `imm` holds the index of the first result and the length of the list.
  std::vector<std::uint32_t> moves;
  const auto in_caller = [&](const ptx::Operand& actual, const ptx::Variable& formal) {
    const auto found = frame_->local.find(actual.text);
    if (found == frame_->local.end()) unsupported("arguments must be .param variables");
    if (found->second.bytes != formal.bytes)
      malformed("the sizes of an argument and its parameter differ");
    return found->second.offset;
  };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const ptx::Variable& formal = callee->parameters[i];
    const Local& to = frame.local.at(formal.name);
    moves.insert(moves.end(), {in_caller(arguments[i], formal), to.offset, to.bytes});
  }
  const auto argument_words = static_cast<std::uint32_t>(moves.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const ptx::Variable& formal = callee->results[i];
    const Local& from = frame.local.at(formal.name);
    moves.insert(moves.end(), {from.offset, in_caller(results[i], formal), from.bytes});
  }
  inst_->aux = list(moves);
  inst_->imm = (std::int64_t{argument_words} << 32) | static_cast<std::int64_t>(moves.size());
  for (std::uint32_t i = 0; i < order_.size(); ++i) {
    if (order_[i] == callee) inst_->target = i;
  }
  inst_->flow = Flow::kCall;
}

// A function has only one frame, so no function may call itself, directly or through others. A
// kernel ends when it reaches such a call.
void Decoder::refuse_recursion() {
  std::map<const ptx::Function*, std::set<const ptx::Function*>> reached;
  for (const ptx::Function* function : order_) {
    std::vector<const ptx::Function*> work = {function};
    while (!work.empty()) {
      const ptx::Function* caller = work.back();
      work.pop_back();
      for (const ptx::Function* callee : calls_[caller]) {
        if (reached[function].insert(callee).second) work.push_back(callee);
      }
    }
  }
  for (std::size_t pc = 0; pc < program_->code.size(); ++pc) {
    inst_ = &program_->code[pc];
    if (inst_->flow != Flow::kCall) continue;
    const ptx::Function* callee = order_[inst_->target];
    if (!reached[callee].contains(program_->functions[pc])) continue;
    const Inst call = *inst_;
    *inst_ = Inst{};
    inst_->guard = call.guard;
    inst_->guard_negated = call.guard_negated;
    refuse_here("function " + callee->name + " calls itself: recursion is not modelled");
  }
}

// Decodes a call of a function without a body, which CUDA provides.
void Decoder::decode_system_call(const std::string& name,
                                 const std::vector<ptx::Operand>& arguments,
                                 const std::vector<ptx::Operand>& results) {
  const DecodeFunction decode = find_opcode_("call " + name);
  if (decode == nullptr) unsupported("function '" + name + "' has no body in this module");
  std::vector<std::uint32_t> offsets;
  call_bytes_.clear();
  for (const auto* list : {&arguments, &results}) {
    for (const ptx::Operand& one : *list) {
      const auto found = frame_->local.find(one.text);
      if (found == frame_->local.end()) unsupported("arguments must be .param variables");
      offsets.push_back(found->second.offset);
      call_bytes_.push_back(found->second.bytes);
    }
  }
  inst_->aux = list(offsets);
  inst_->imm = static_cast<std::int64_t>(arguments.size());
  decode(*this);
}

void decode_call(Decoder& decoder) { decoder.decode_call(); }

}  // namespace annulus::simulator
