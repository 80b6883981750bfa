#include "sim/decode.h"

#include <bit>

#include "base/fail.h"
#include "sim/assign_slots.h"
#include "sim/context.h"

namespace annulus::sim {

#define OPCODE(name, function) void function(Decoder&);
#include "sim/ops/opcodes.def"
#undef OPCODE

DecodeFunction find_opcode(std::string_view opcode) {
  static const std::map<std::string_view, DecodeFunction> kOpcodes = {
#define OPCODE(name, function) {name, function},
#include "sim/ops/opcodes.def"
#undef OPCODE
  };
  const auto found = kOpcodes.find(opcode);
  return found == kOpcodes.end() ? nullptr : found->second;
}

Type parse_type(std::string_view text) {
  if (text == "f16x2") return {Type::kFloat, 16, 2};
  if (text == "bf16x2") return {Type::kBrain, 16, 2};
  if (text == "bf16") return {Type::kBrain, 16, 1};
  if (text == "pred") return {Type::kPredicate, 1, 1};
  if (text.size() < 2 || text.size() > 3) return {Type::kBits, 0, 1};
  Type type;
  switch (text[0]) {
    case 'b':
      type.kind = Type::kBits;
      break;
    case 'u':
      type.kind = Type::kUnsigned;
      break;
    case 's':
      type.kind = Type::kSigned;
      break;
    case 'f':
      type.kind = Type::kFloat;
      break;
    default:
      return {Type::kBits, 0, 1};
  }
  const std::string_view digits = text.substr(1);
  type.bits = digits == "8"    ? 8
              : digits == "16" ? 16
              : digits == "32" ? 32
              : digits == "64" ? 64
                               : 0;
  return type;
}

Decoder::Decoder(const ptx::Module& module, const ptx::Function& entry, const Placement& placement,
                 Program& program)
    : module_(&module), entry_(&entry), placement_(&placement), program_(&program) {}

void Decoder::unsupported(std::string_view what) const {
  base::fail(ErrorCode::kUnsupported, "PTX line {}: '{}': {}", source_->line,
             to_string(*function_, *source_), what);
}

void Decoder::malformed(std::string_view what) const {
  base::fail(ErrorCode::kParse, "PTX line {}: '{}': {}", source_->line,
             to_string(*function_, *source_), what);
}

const ptx::Operand& Decoder::operand(std::size_t index) const {
  if (index >= source_->operands.size()) malformed("too few operands");
  return source_->operands[index];
}

Type Decoder::type_from_end(std::size_t index) const {
  std::size_t seen = 0;
  for (std::size_t i = source_->modifiers.size(); i-- > 0;) {
    const Type type = parse_type(source_->modifiers[i]);
    if (type.bits != 0 && seen++ == index) return type;
  }
  malformed("no type");
}

std::uint32_t Decoder::allocate(std::uint32_t bytes, std::uint32_t alignment) {
  std::uint32_t& end = program_->register_bytes;
  end = (end + alignment - 1) / alignment * alignment;
  const std::uint32_t slot = end;
  end += bytes;
  return slot;
}

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
  static const std::map<std::string_view, Special> kSpecials = {
      {"%tid.x", Special::kTidX},
      {"%tid.y", Special::kTidY},
      {"%tid.z", Special::kTidZ},
      {"%ntid.x", Special::kNtidX},
      {"%ntid.y", Special::kNtidY},
      {"%ntid.z", Special::kNtidZ},
      {"%ctaid.x", Special::kCtaidX},
      {"%ctaid.y", Special::kCtaidY},
      {"%ctaid.z", Special::kCtaidZ},
      {"%nctaid.x", Special::kNctaidX},
      {"%nctaid.y", Special::kNctaidY},
      {"%nctaid.z", Special::kNctaidZ},
      {"%laneid", Special::kLaneid},
      {"%warpid", Special::kWarpid},
      {"%nwarpid", Special::kNwarpid},
      {"%smid", Special::kSmid},
      {"%nsmid", Special::kNsmid},
      {"%gridid", Special::kGridid},
      {"%lanemask_eq", Special::kLanemaskEq},
      {"%lanemask_le", Special::kLanemaskLe},
      {"%lanemask_lt", Special::kLanemaskLt},
      {"%lanemask_ge", Special::kLanemaskGe},
      {"%lanemask_gt", Special::kLanemaskGt},
      {"%dynamic_smem_size", Special::kDynamicShared},
      {"%total_smem_size", Special::kTotalShared}};
  const auto known = kSpecials.find(name);
  if (known == kSpecials.end()) unsupported("special register " + name + " is not modelled");
  const int stored = bytes == 8 ? 8 : bytes == 2 ? 2 : 4;
  const auto [place, fresh] = specials_.emplace(std::pair(name, stored), 0);
  if (fresh) {
    place->second = allocate(static_cast<std::uint32_t>(stored) * kLanes, 64);
    program_->specials.push_back({place->second, known->second});
    if (stored != 4) unsupported("special registers are read as 32 bits");
  }
  return place->second;
}

std::uint64_t Decoder::symbol(const ptx::Operand& operand, ptx::Space* space, bool* frame) {
  const auto offset = static_cast<std::uint64_t>(operand.offset);
  if (const auto local = frame_->local.find(operand.text); local != frame_->local.end()) {
    *space = ptx::Space::kLocal;
    *frame = true;
    return local->second + offset;
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
  malformed("unknown name '" + operand.text + "'");
}

std::uint32_t Decoder::register_slot(const ptx::Operand& operand, int bits) {
  const auto index = static_cast<std::size_t>(operand.reg);
  const ptx::Register& reg = function_->registers[index];
  if (reg.bits != bits) {
    malformed(fmt::format("{} has {} bits, the instruction takes {}", reg.name, reg.bits, bits));
  }
  return frame_->slots[index];
}

std::uint32_t Decoder::in(const ptx::Operand& operand, Type type) {
  int bits = type.bits * type.count;
  if (bits == 8) bits = 16;
  switch (operand.kind) {
    case ptx::OperandKind::kRegister:
      reads_.back().push_back(frame_->first_register + static_cast<std::uint32_t>(operand.reg));
      return register_slot(operand, bits);
    case ptx::OperandKind::kImmediate: {
      std::uint64_t value = operand.bits;
      if (operand.is_float && type.kind == Type::kFloat && type.bits == 32) {
        const double real = std::bit_cast<double>(value);
        // A NaN is shortened by hand so that its payload stays.
        value = real != real
                    ? ((value >> 32) & 0x80000000u) | 0x7f800000u | ((value >> 29) & 0x7fffffu)
                    : std::bit_cast<std::uint32_t>(static_cast<float>(real));
      } else if (operand.is_float && bits == 32) {
        value = std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(value)));
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
      malformed("an operand of another kind is needed");
  }
}

std::uint32_t Decoder::out(const ptx::Operand& operand, Type type) {
  if (operand.kind == ptx::OperandKind::kSink) return scratch();
  if (operand.kind != ptx::OperandKind::kRegister) malformed("the destination is no register");
  int bits = type.bits * type.count;
  if (bits == 8) bits = 16;
  writes_.back().push_back(frame_->first_register + static_cast<std::uint32_t>(operand.reg));
  return register_slot(operand, bits);
}

std::uint32_t Decoder::in_wide(const ptx::Operand& operand, Type type, int* bits) {
  if (operand.kind == ptx::OperandKind::kRegister) {
    *bits = function_->registers[static_cast<std::size_t>(operand.reg)].bits;
    if (*bits == 1) malformed("a predicate cannot be used here");
    if (*bits < type.bits * type.count) malformed("this register is too narrow");
    reads_.back().push_back(frame_->first_register + static_cast<std::uint32_t>(operand.reg));
    return frame_->slots[static_cast<std::size_t>(operand.reg)];
  }
  *bits = std::max(16, type.bits * type.count);
  return in(operand, type);
}

std::uint32_t Decoder::out_wide(const ptx::Operand& operand, Type type, int* bits) {
  if (operand.kind == ptx::OperandKind::kSink) {
    *bits = std::max(16, type.bits * type.count);
    return scratch();
  }
  if (operand.kind != ptx::OperandKind::kRegister) malformed("the destination is no register");
  *bits = function_->registers[static_cast<std::size_t>(operand.reg)].bits;
  if (*bits == 1) malformed("a predicate cannot be used here");
  if (*bits < type.bits * type.count) malformed("this register is too narrow");
  writes_.back().push_back(frame_->first_register + static_cast<std::uint32_t>(operand.reg));
  return frame_->slots[static_cast<std::size_t>(operand.reg)];
}

std::uint32_t Decoder::predicate_in(const ptx::Operand& operand, bool* negated) {
  *negated = operand.negated;
  if (operand.kind == ptx::OperandKind::kImmediate) {
    const bool value = operand.bits != 0;
    *negated = false;
    return constant(value ? ~std::uint64_t{0} : 0, 4);
  }
  if (operand.kind != ptx::OperandKind::kRegister) malformed("a predicate is needed");
  reads_.back().push_back(frame_->first_register + static_cast<std::uint32_t>(operand.reg));
  return register_slot(operand, 1);
}

std::uint32_t Decoder::predicate_out(const ptx::Operand& operand) {
  if (operand.kind == ptx::OperandKind::kSink) return scratch();
  if (operand.kind != ptx::OperandKind::kRegister) malformed("a predicate is needed");
  writes_.back().push_back(frame_->first_register + static_cast<std::uint32_t>(operand.reg));
  return register_slot(operand, 1);
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
    result.base_bits = function_->registers[static_cast<std::size_t>(operand.reg)].bits;
    if (result.base_bits != 32 && result.base_bits != 64) malformed("no register for an address");
    reads_.back().push_back(frame_->first_register + static_cast<std::uint32_t>(operand.reg));
    result.base = frame_->slots[static_cast<std::size_t>(operand.reg)];
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

// Gives a function its registers and its frame of local variables and call parameters. There is
// one frame per function, not per call: recursion is refused.
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
    std::uint32_t& end = program_->info.local_bytes;
    const auto alignment =
        static_cast<std::uint32_t>(std::max<std::uint64_t>(variable.alignment, 1));
    end = (end + alignment - 1) / alignment * alignment;
    frame.local[variable.name] = end;
    end += static_cast<std::uint32_t>(variable.bytes);
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

void Decoder::decode_all() {
  order_ = {entry_};
  place_function(*entry_);
  // decode_function appends the functions it meets to order_.
  for (std::size_t i = 0; i < order_.size(); ++i) decode_function(*order_[i]);
}

void Decoder::start_again() {
  program_->code.clear();
  program_->slots.clear();
  program_->constants.clear();
  program_->specials.clear();
  program_->functions.clear();
  program_->instructions.clear();
  program_->info.local_bytes = 0;
  frames_.clear();
  constants_.clear();
  specials_.clear();
  register_count_ = 0;
  scratch_ = kNoSlot;
  reads_.clear();
  writes_.clear();
}

// Decodes twice: once to learn which registers each instruction reads and writes, once with slots
// that registers share. With calls every register keeps a slot of its own, since a caller's values
// live on while the callee runs.
void Decoder::run() {
  decode_all();
  if (order_.size() == 1) {
    std::vector<Liveness> code;
    for (std::size_t i = 0; i < program_->code.size(); ++i) {
      const Inst& inst = program_->code[i];
      const bool guarded = inst.guard != kNoSlot;
      code.push_back(
          {.reads = std::move(reads_[i]),
           .writes = std::move(writes_[i]),
           .guarded = guarded,
           .falls_through = guarded || (inst.flow != Flow::kBranch && inst.flow != Flow::kReturn &&
                                        inst.flow != Flow::kExit),
           .target = inst.flow == Flow::kBranch ? inst.target : kNoSlot});
    }
    std::vector<int> bits;
    for (const ptx::Register& reg : entry_->registers) bits.push_back(reg.bits);
    start_again();
    Assignment assignment = assign_slots(code, bits);
    assigned_ = std::move(assignment.slots);
    program_->register_bytes = assignment.bytes;
    decode_all();
  }
  for (Inst& inst : program_->code) {
    if (inst.flow == Flow::kCall) inst.target = frames_.at(order_[inst.target]->name).start;
  }
  program_->info.local_bytes = (program_->info.local_bytes + 15) / 16 * 16;
  program_->info.registers = std::min<std::uint32_t>(255, register_count_);
  watch_registers();
}

void Decoder::decode_function(const ptx::Function& function) {
  function_ = &function;
  frame_ = &frames_.at(function.name);
  frame_->start = static_cast<std::uint32_t>(program_->code.size());
  const std::uint32_t start = frame_->start;
  for (const ptx::Instruction& instruction : function.code) decode_one(instruction);
  // Falling off the end is a return.
  static const ptx::Instruction kReturn = [] {
    ptx::Instruction instruction;
    instruction.opcode = "ret";
    return instruction;
  }();
  decode_one(kReturn);
  for (std::uint32_t i = start; i < program_->code.size(); ++i) {
    if (program_->code[i].flow == Flow::kBranch) program_->code[i].target += start;
  }
}

void Decoder::decode_one(const ptx::Instruction& instruction) {
  source_ = &instruction;
  program_->code.emplace_back();
  program_->functions.push_back(function_);
  program_->instructions.push_back(&instruction);
  reads_.emplace_back();
  writes_.emplace_back();
  inst_ = &program_->code.back();
  const DecodeFunction decode = find_opcode(instruction.opcode);
  if (decode == nullptr) unsupported("this instruction is not modelled");
  if (instruction.guard >= 0) {
    inst_->guard = frame_->slots[static_cast<std::size_t>(instruction.guard)];
    inst_->guard_negated = instruction.guard_negated;
    reads_.back().push_back(frame_->first_register + static_cast<std::uint32_t>(instruction.guard));
  }
  decode(*this);
}

// call.uni (results), function, (arguments); results and arguments are .param variables, which are
// copied between the frames of caller and callee by the handler.
void Decoder::decode_call() {
  std::size_t at = 0;
  std::vector<ptx::Operand> results;
  if (operand(at).kind == ptx::OperandKind::kList) results = operand(at++).elements;
  const ptx::Operand& name = operand(at++);
  if (name.kind != ptx::OperandKind::kSymbol) unsupported("indirect calls are not modelled");
  std::vector<ptx::Operand> arguments;
  if (at < operands()) arguments = operand(at).elements;
  const ptx::Function* callee = nullptr;
  for (const ptx::Function& function : module_->functions) {
    if (function.name == name.text && !function.declaration) callee = &function;
  }
  if (callee == nullptr) unsupported("function '" + name.text + "' has no body here");
  if (arguments.size() != callee->parameters.size() || results.size() != callee->results.size()) {
    malformed("the arguments do not fit the function");
  }
  if (!frames_.contains(callee->name)) {
    place_function(*callee);
    order_.push_back(callee);
  }
  const Frame& frame = frames_.at(callee->name);
  // Triples (from, to, bytes): arguments first, then results, which go the other way on return.
  std::vector<std::uint32_t> moves;
  const auto caller_offset = [&](const ptx::Operand& variable) {
    const auto found = frame_->local.find(variable.text);
    if (found == frame_->local.end()) unsupported("arguments must be .param variables");
    return found->second;
  };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    moves.insert(moves.end(),
                 {caller_offset(arguments[i]), frame.local.at(callee->parameters[i].name),
                  static_cast<std::uint32_t>(callee->parameters[i].bytes)});
  }
  const auto argument_words = static_cast<std::uint32_t>(moves.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    moves.insert(moves.end(), {frame.local.at(callee->results[i].name), caller_offset(results[i]),
                               static_cast<std::uint32_t>(callee->results[i].bytes)});
  }
  inst_->aux = list(moves);
  inst_->imm = (std::int64_t{argument_words} << 32) | static_cast<std::int64_t>(moves.size());
  for (std::uint32_t i = 0; i < order_.size(); ++i) {
    if (order_[i] == callee) inst_->target = i;
  }
  inst_->flow = Flow::kCall;
}

void decode_call(Decoder& decoder) { decoder.decode_call(); }

}  // namespace annulus::sim
