#include "simulator/decode/decoder.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "base/math.h"
#include "simulator/decode/assign_slots.h"
#include "simulator/decode/compared_loads.h"
#include "simulator/decode/ordered_accesses.h"
#include "simulator/decode/polling_loops.h"

namespace annulus::simulator {
namespace {

// An instruction that the families do not support. If the PTX itself is wrong, or too large, an
// ordinary Error is thrown.
struct Unmodelled : Error {
  explicit Unmodelled(std::string_view what) : Error(ErrorCode::kUnsupported, std::string(what)) {}
};

constexpr std::uint64_t kMaxAnalysisBits = std::uint64_t{1} << 31;  // 256 MB

}  // namespace

Decoder::Decoder(const ptx::Module& module, const ptx::Function& entry, const Placement& placement,
                 FindOpcode find_opcode, Program& program)
    : module_(&module),
      entry_(&entry),
      placement_(&placement),
      find_opcode_(find_opcode),
      program_(&program) {}

void Decoder::unsupported(std::string_view what) const { throw Unmodelled(what); }

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
  // A million registers of 64 bits. ptxas gives a thread at most 255 registers of 32 bits. A block
  // may have 32 warps, and the host holds the registers of all of them at once.
  constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 28;
  const std::uint64_t slot =
      base::round_up(std::uint64_t{program_->register_bytes}, std::uint64_t{alignment});
  if (slot + bytes > kMaxBytes) {
    base::fail(
        ErrorCode::kUnsupported,
        "the functions of this kernel declare registers of more than {} bytes for a warp, too "
        "many to simulate",
        kMaxBytes);
  }
  program_->register_bytes = static_cast<std::uint32_t>(slot + bytes);
  return static_cast<std::uint32_t>(slot);
}

void Decoder::decode_all() {
  order_ = {entry_};
  place_function(*entry_);
  // decode_function appends to order_ the functions that it meets.
  for (std::size_t i = 0; i < order_.size(); ++i) decode_function(*order_[i]);
}

void Decoder::start_again() {
  program_->code.clear();
  program_->slots.clear();
  program_->constants.clear();
  program_->specials.clear();
  program_->functions.clear();
  program_->instructions.clear();
  program_->matrix_forms.clear();
  program_->refusals.clear();
  program_->info.local_bytes = 0;
  frames_.clear();
  constants_.clear();
  specials_.clear();
  register_count_ = 0;
  scratch_ = kNoSlot;
  reads_.clear();
  writes_.clear();
  keeps_.clear();
  matrix_registers_.clear();
}

// The data flow analyses hold a bit for each register at each instruction.
void Decoder::refuse_huge() const {
  const std::uint64_t bits = std::uint64_t{register_count_} * program_->code.size();
  if (bits > kMaxAnalysisBits) {
    base::fail(ErrorCode::kUnsupported, "kernel {}: {} instructions with {} registers are too many",
               entry_->name, program_->code.size(), register_count_);
  }
}

// Decodes twice: once to find which registers each instruction reads and writes, and once with
// slots that registers share. In a program with calls every register has a separate slot, because
// the values of a caller live during the call.
void Decoder::run() {
  decode_all();
  refuse_huge();
  std::uint32_t live = register_count_;
  if (order_.size() == 1) {
    std::vector<Liveness> code;
    for (std::size_t i = 0; i < program_->code.size(); ++i) {
      const Inst& inst = program_->code[i];
      const bool guarded = inst.guard != kNoSlot;
      code.push_back(
          {.reads = std::move(reads_[i]),
           .writes = std::move(writes_[i]),
           .keeps = std::move(keeps_[i]),
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
    live = assignment.bytes / (4 * kLanes);
    decode_all();
  }
  refuse_recursion();
  for (Inst& inst : program_->code) {
    if (inst.flow == Flow::kCall) inst.target = frames_.at(order_[inst.target]->name).start;
  }
  program_->info.local_bytes = (program_->info.local_bytes + 15) / 16 * 16;
  program_->info.registers = std::clamp<std::uint32_t>(live, 16, 255);
  drop_unread_results();
  mark_ordered_accesses(*program_);
  mark_compared_loads(*program_);
  mark_polling_loops(*program_);
  watch_registers();
  watch_matrix_registers();
  number_sites();
}

// Compilers write an atom with an unused result in place of a red, and ptxas turns it into a red.
// It counts as a red here too, because its thread learns nothing from it.
void Decoder::drop_unread_results() {
  std::vector<bool> read(register_count_, false);
  for (const auto& of_one : reads_) {
    for (const std::uint32_t reg : of_one) read[reg] = true;
  }
  for (std::size_t pc = 0; pc < program_->code.size(); ++pc) {
    Inst& inst = program_->code[pc];
    if (inst.kind != Class::kAtomic || inst.d == kNoSlot) continue;
    if (std::ranges::none_of(writes_[pc], [&](std::uint32_t reg) { return read[reg]; })) {
      inst.d = kNoSlot;
    }
  }
}

// Instructions beyond the largest number of a stamp keep site 0. Messages cannot name their lines.
void Decoder::number_sites() {
  program_->sites = {kNoSlot};
  for (std::uint32_t pc = 0; pc < program_->code.size(); ++pc) {
    Inst& inst = program_->code[pc];
    const bool global = inst.kind == Class::kGlobalLoad || inst.kind == Class::kGlobalStore ||
                        inst.kind == Class::kAsyncCopy || inst.kind == Class::kAtomic;
    if (!global || program_->sites.size() > Program::kMaxSites) continue;
    inst.site = static_cast<std::uint16_t>(program_->sites.size());
    program_->sites.push_back(pc);
  }
}

MemoryOrder Decoder::memory_order(bool atomic) {
  const bool strong = atomic || has("relaxed") || has("volatile") || has("mmio");
  if (has("cta") || has("cluster")) {
    if (has("acquire") || has("acq_rel")) return MemoryOrder::kBlockAcquire;
    return strong || has("release") ? MemoryOrder::kBlock : MemoryOrder::kWeak;
  }
  const MemoryOrder order = has("acq_rel")   ? MemoryOrder::kBoth
                            : has("acquire") ? MemoryOrder::kAcquire
                            : has("release") ? MemoryOrder::kRelease
                            : strong         ? MemoryOrder::kRelaxed
                                             : MemoryOrder::kWeak;
  if (order > MemoryOrder::kRelaxed) program_->orders_blocks = true;
  return order;
}

void Decoder::decode_function(const ptx::Function& function) {
  function_ = &function;
  frame_ = &frames_.at(function.name);
  frame_->start = static_cast<std::uint32_t>(program_->code.size());
  const std::uint32_t start = frame_->start;
  for (const ptx::Instruction& instruction : function.code) decode_one(instruction);
  // A function without a return at its end returns there.
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
  keeps_.emplace_back();
  inst_ = &program_->code.back();
  try {
    take_guard();
    const DecodeFunction decode = find_opcode_(instruction.opcode);
    if (decode == nullptr) unsupported("this instruction is not modelled");
    decode(*this);
  } catch (const Unmodelled& error) {
    refuse(error.what());
  }
}

void Decoder::take_guard() {
  if (source_->guard < 0) return;
  ptx::Operand guard;
  guard.kind = ptx::OperandKind::kRegister;
  guard.negated = source_->guard_negated;
  guard.reg = source_->guard;
  inst_->guard = predicate_in(guard, &inst_->guard_negated);
}

// Many programs never reach an unsupported instruction, so it ends the kernel only when the kernel
// reaches it. Until then only the instruction's guard has an effect.
void Decoder::refuse(const char* what) {
  *inst_ = Inst{};
  for (auto* of_all : {&reads_, &writes_, &keeps_}) of_all->back().clear();
  take_guard();
  refuse_here(what);
}

// Makes the instruction end a kernel that reaches it, with this message.
void Decoder::refuse_here(std::string what) {
  inst_->aux = static_cast<std::uint32_t>(program_->refusals.size());
  program_->refusals.push_back(std::move(what));
  find_opcode_("")(*this);
}

}  // namespace annulus::simulator
