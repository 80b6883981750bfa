#ifndef ANNULUS_SIMULATOR_DECODE_DECODER_H_
#define ANNULUS_SIMULATOR_DECODE_DECODER_H_

// Turns a parsed instruction into an Inst. The Decoder gives the family of the instruction
// (tools/simulator/src/simulator/ops/*.cc) slots for its operands and its result. The family sets
// the handlers, or refuses what it does not support.
//
// To add an instruction, write a line in ops/opcodes.def, a decode function with its handler in the
// family's file, and a golden program in tools/simulator/tests/golden.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulator/decode/type.h"
#include "simulator/program/program.h"
#include "simulator/ptx/module.h"

namespace annulus::simulator {

class Decoder;

// Decodes the instructions of one opcode.
using DecodeFunction = void (*)(Decoder&);
// Finds the decode function of an opcode, or null if there is none. The empty opcode stands for
// unsupported instructions, whose Inst::aux is an index into Program::refusals. "call vprintf" and
// the like stand for functions that CUDA provides.
using FindOpcode = DecodeFunction (*)(std::string_view opcode);

// The addresses of the variables of a module: generic addresses for .global and .const, and
// addresses in shared memory.
struct Placement {
  std::map<std::string, std::uint64_t, std::less<>> global;
  std::map<std::string, std::uint64_t, std::less<>> functions;
  std::map<std::string, std::uint32_t, std::less<>> shared;  // variables of a single kernel
};

class Decoder {
 public:
  Decoder(const ptx::Module& module, const ptx::Function& entry, const Placement& placement,
          FindOpcode find_opcode, Program& program);

  // Decodes the kernel and every function that it calls.
  void run();

  // --- For the families ---

  const ptx::Instruction& source() const { return *source_; }
  const ptx::Function& function() const { return *function_; }
  std::size_t operands() const { return source_->operands.size(); }
  const ptx::Operand& operand(std::size_t index) const;
  bool has(const char* modifier) const { return source_->has(modifier); }
  // The index-th type among the modifiers, counted from the end (0: the last).
  Type type_from_end(std::size_t index) const;
  Type type() const { return type_from_end(0); }

  // The slot of a source of `type`: a register of that width, an immediate, a special register, or
  // the address of a symbol. It counts as a read.
  std::uint32_t in(const ptx::Operand& operand, Type type);
  std::uint32_t in(std::size_t index, Type type) { return in(operand(index), type); }
  // The slot of a destination register of that width, or a scratch slot for `_`. It counts as a
  // write.
  std::uint32_t out(const ptx::Operand& operand, Type type);
  std::uint32_t out(std::size_t index, Type type) { return out(operand(index), type); }
  // The slot of a predicate's lane mask. *negated is set if a source is negated.
  std::uint32_t predicate_in(const ptx::Operand& operand, std::uint8_t* negated);
  std::uint32_t predicate_out(const ptx::Operand& operand);
  // The slot of a register of at least the type's width, for ld, st and cvt. *bits becomes its
  // width.
  std::uint32_t in_wide(const ptx::Operand& operand, Type type, int* bits);
  std::uint32_t out_wide(const ptx::Operand& operand, Type type, int* bits);
  // The slot of a register that belongs to a matrix product while the product is in flight. An
  // accumulator counts as a write and shares its slot with no other register; otherwise the
  // register is a fragment of A. *number becomes its number among the registers of wgmma.
  std::uint32_t matrix_register(const ptx::Operand& operand, bool accumulator,
                                std::uint32_t* number);
  // The value of an immediate operand. Any other operand is refused.
  std::int64_t immediate(std::size_t index);
  // A slot that holds these bits in every lane.
  std::uint32_t constant(std::uint64_t bits, int bytes);
  // A slot of 256 bytes that no register uses. It is large enough for any destination.
  std::uint32_t scratch();
  // An address operand: the slot of the base (a constant 0 if there is none), its width in bits,
  // and the offset, which includes the address of a symbol.
  struct Address {
    std::uint32_t base = kNoSlot;
    int base_bits = 64;
    std::int64_t offset = 0;
    ptx::Space symbol_space = ptx::Space::kNone;  // the space of the symbol, if the operand names
                                                  // one
    bool frame = false;  // whether it is in the function's frame (place_function)
  };
  Address address(const ptx::Operand& operand);
  // Appends operand slots to Program::slots and returns the index of the first.
  std::uint32_t list(const std::vector<std::uint32_t>& slots);

  // For a call of a function that CUDA provides: the bytes of the arguments and then of the
  // results. Inst::aux is the index of their offsets in the frame, and Inst::imm is the number of
  // arguments.
  const std::vector<std::uint32_t>& call_bytes() const { return call_bytes_; }

  Inst& inst() { return *inst_; }
  Program& program() { return *program_; }
  // The memory order of a load, store or atomic between blocks. If it is an acquire or a release,
  // the program is marked as one whose blocks can order themselves.
  MemoryOrder memory_order(bool atomic);
  void handler(Handler both) { inst_->run[0] = inst_->run[1] = both; }
  void handler(Handler fast, Handler checked) {
    inst_->run[0] = fast;
    inst_->run[1] = checked;
  }

  // Refuses the instruction: a kernel that reaches it ends with this message.
  [[noreturn]] void unsupported(std::string_view what = "this form is not modelled") const;
  // Refuses the module, with the message "PTX line N: `instruction`: what".
  [[noreturn]] void malformed(std::string_view what) const;

 private:
  struct Local {  // a variable or call parameter in a thread's local memory
    std::uint32_t offset = 0;
    std::uint32_t bytes = 0;
  };
  struct Frame {                       // a function in the program
    std::vector<std::uint32_t> slots;  // the slots of registers
    std::map<std::string, Local, std::less<>> local;
    std::uint32_t start = 0;           // the first instruction
    std::uint32_t first_register = 0;  // in the numbering of all frames
  };

  void decode_all();
  void start_again();
  void place_function(const ptx::Function& function);
  void decode_function(const ptx::Function& function);
  void decode_one(const ptx::Instruction& instruction);
  void take_guard();
  void refuse(const char* what);
  void refuse_here(std::string what);
  void refuse_recursion();
  void drop_unread_results();
  void refuse_huge() const;
  void watch_registers();
  std::vector<bool> dropped_results() const;
  bool passes_on(std::size_t pc, std::uint32_t reg) const;
  void number_sites();
  void watch_matrix_registers();
  std::uint32_t allocate(std::uint32_t bytes, std::uint32_t alignment);
  std::uint32_t special(const std::string& name, int bytes);
  std::uint64_t symbol(const ptx::Operand& operand, ptx::Space* space, bool* frame);
  const ptx::Register& register_of(const ptx::Operand& operand) const;
  std::uint32_t register_slot(std::int32_t reg) const;
  std::uint32_t register_slot(const ptx::Operand& operand, int bits) const;
  std::uint32_t register_slot_at_least(const ptx::Operand& operand, Type type, int* bits) const;
  void note_read(std::int32_t reg);
  void note_write(std::int32_t reg);
  void decode_call();
  void decode_system_call(const std::string& name, const std::vector<ptx::Operand>& arguments,
                          const std::vector<ptx::Operand>& results);
  friend void decode_call(Decoder& decoder);

  const ptx::Module* module_;
  const ptx::Function* entry_;
  const Placement* placement_;
  FindOpcode find_opcode_;
  Program* program_;
  const ptx::Function* function_ = nullptr;
  const ptx::Instruction* source_ = nullptr;
  Inst* inst_ = nullptr;
  Frame* frame_ = nullptr;
  std::map<std::string, Frame, std::less<>> frames_;
  std::vector<const ptx::Function*> order_;
  std::map<const ptx::Function*, std::set<const ptx::Function*>> calls_;  // by caller
  std::map<std::pair<std::uint64_t, int>, std::uint32_t> constants_;
  std::map<Special, std::uint32_t> specials_;
  std::uint32_t register_count_ = 0;
  std::uint32_t scratch_ = kNoSlot;
  std::vector<std::uint32_t> call_bytes_;
  std::vector<std::uint32_t> assigned_;  // the slots of registers, after they are assigned
  // The register numbers (over all frames) that each instruction reads and writes.
  std::vector<std::vector<std::uint32_t>> reads_;
  std::vector<std::vector<std::uint32_t>> writes_;
  std::vector<std::vector<std::uint32_t>> keeps_;
  // the numbers of wgmma's registers, by register
  std::map<std::uint32_t, std::uint32_t> matrix_registers_;
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_DECODE_DECODER_H_
