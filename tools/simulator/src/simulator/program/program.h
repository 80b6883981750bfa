#ifndef ANNULUS_SIMULATOR_PROGRAM_PROGRAM_H_
#define ANNULUS_SIMULATOR_PROGRAM_PROGRAM_H_

// A kernel decoded for the interpreter: a flat array of instructions, whose operands are byte
// offsets into the register file of a warp. Immediates and special registers are slots of that file
// too, and are filled in before the warp starts. So a handler need not distinguish kinds of
// operands.
//
// Register file of one warp:
//   | predicates, 4 B: a lane mask each | registers | constants | special registers |
//   16-bit register: 32 x 2 B, 32-bit: 32 x 4 B, 64-bit: 32 x 8 B; lane 0 first.

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/program/lanes.h"
#include "simulator/program/matrix_form.h"
#include "simulator/ptx/module.h"

namespace annulus::simulator {

// The memory order of an access to global memory (PTX ISA 9.0, section 8.7). All orders except
// kWeak are strong. Accesses with the order kBlock have a scope below the device, and so are weak
// for other blocks.
enum class MemoryOrder : std::uint8_t {
  kWeak,
  kBlock,
  kBlockAcquire,
  kRelaxed,
  kAcquire,
  kRelease,
  kBoth
};
constexpr bool strong_for_device(MemoryOrder order) { return order >= MemoryOrder::kRelaxed; }
constexpr bool acquires(MemoryOrder order) {
  return order == MemoryOrder::kBlockAcquire || order == MemoryOrder::kAcquire ||
         order == MemoryOrder::kBoth;
}

struct Warp;
struct Inst;

// Executes one instruction for the lanes of `mask`, which is never empty.
using Handler = void (*)(Warp& warp, const Inst& inst, Mask mask);

// The part of an instruction that the loop which runs a warp does. The handler does everything
// else.
enum class Flow : std::uint8_t {
  kPlain,
  kBranch,  // target = inst.target
  kCall,    // target = inst.target
  kReturn,
  kExit,
  kBarrier,  // the handler sets in Warp::pause whether the lanes wait
  kOrdered,  // co-resident CTAs make the access in the order of their clocks
};

// The lanes that must have reached an instruction before it runs.
enum class Convergence : std::uint8_t {
  kNone,
  kWarp,    // .aligned: every lane; a barrier does not need lanes that have exited
  kMembers  // .sync: the lanes of the member mask, operand inst.members
};

// Classes of instructions. Each has a counter.
enum class Class : std::uint8_t {
#define CLASS_COUNTER(name, class, meaning) class,
#include "annulus/counters.def"
  kCount
};

constexpr std::uint32_t kNoSlot = 0xffffffffu;

enum Watch : std::uint8_t {
  kWatchWritten = 1,  // a source may be read before it is written on some path
  kWatchMatrix = 2    // not a wgmma, but it accesses a register that a wgmma uses
};

struct Inst {
  Handler run[2] = {nullptr, nullptr};  // the handlers for fast mode and for checked mode
  std::uint32_t d = kNoSlot;            // destination slot
  std::uint32_t a = kNoSlot;            // source slots
  std::uint32_t b = kNoSlot;
  std::uint32_t c = kNoSlot;
  std::int64_t imm = 0;   // an address offset, a table, or another value for the handler
  std::uint32_t aux = 0;  // often an index into Program::slots; each handler defines it
  std::uint32_t guard = kNoSlot;
  std::uint32_t members = kNoSlot;  // slot of the member mask
  std::uint32_t target = 0;
  Flow flow = Flow::kPlain;
  Convergence convergence = Convergence::kNone;
  Class kind = Class::kOther;
  std::uint8_t guard_negated = 0;
  MemoryOrder order = MemoryOrder::kWeak;
  bool compared = false;       // set for a load; see simulator/decode/compared_loads.h
  bool polls = false;          // set for a branch back; see simulator/decode/polling_loops.h
  std::uint16_t site = 0;      // see Program::sites
  std::uint8_t watch = 0;      // the checks of checked mode before it runs, see Watch
  std::uint8_t small[5] = {};  // modifiers; each handler defines their places
};

// A slot that holds the same constant for all lanes.
struct Constant {
  std::uint32_t slot = 0;
  std::uint64_t bits = 0;
  int bytes = 4;  // bytes of a lane: 2, 4 or 8
};

// The special registers (specials.def). The vectors come first, with three registers each, so the
// register of a vector in a dimension is 3 * vector + dimension. The other registers follow.
enum class SpecialVector : std::uint8_t {
#define VECTOR(name, text) name,
#include "simulator/program/specials.def"
  kCount
};
enum class Special : std::uint8_t {
#define VECTOR(name, text) name##X, name##Y, name##Z,
#include "simulator/program/specials.def"
#define SCALAR(name, text) name,
#include "simulator/program/specials.def"
};

struct SpecialSlot {
  std::uint32_t slot = 0;
  Special special{};
};

// For checked mode: registers that may be read before they are written.
struct RegisterUse {
  std::uint32_t watched = 0;  // index into the warp's table of written-lane masks
  std::uint32_t reg = 0;      // the register's number, for the message
  bool passed_on = false;     // the instruction only passes it to shared memory or another lane
};

// For checked mode: a move that makes a part of a register as defined as its one or two sources
// are. Parts are numbered; kNoSlot stands for a source that is defined.
struct PartMove {
  std::uint32_t to = 0;
  std::uint32_t from = kNoSlot;
  std::uint32_t also = kNoSlot;
  bool selects = false;  // selp: in each lane either `from` or `also` moves, depending on Inst::c
};

// The properties of a kernel that the driver needs.
struct KernelInfo {
  std::string name;
  int target = 0;  // the architecture of its PTX: 80 for sm_80, 90 for sm_90a
  std::vector<std::uint32_t> parameter_offsets;  // in the parameter block, one for each parameter
  std::vector<std::uint32_t> parameter_sizes;    // in bytes
  std::uint32_t parameter_bytes = 0;             // bytes of the whole block
  std::uint32_t static_shared_bytes = 0;
  std::uint32_t local_bytes = 0;     // bytes of a thread
  std::uint32_t max_threads = 1024;  // .maxntid, else 1024
  // The number of registers that hold values at the same time, at most 255. It is an estimate,
  // because registers of PTX are virtual.
  std::uint32_t registers = 0;
  // The registers of a thread at launch, which setmaxnreg then changes. It is 0 if nothing in the
  // kernel determines the number (run/load.cc).
  std::uint32_t max_registers = 0;
  std::uint32_t cluster[3] = {0, 0, 0};  // .reqnctapercluster; 0: not given
};

struct Program {
  // Sites have to fit into a stamp (simulator/check/access_plane.h).
  static constexpr std::uint32_t kMaxSites = (1u << 14) - 1;

  KernelInfo info;
  std::vector<Inst> code;
  std::vector<std::uint32_t> slots;  // operand lists of instructions with many operands
  std::vector<Constant> constants;
  std::vector<SpecialSlot> specials;
  std::uint32_t register_bytes = 0;         // bytes of a warp's register file
  std::uint32_t dynamic_shared_offset = 0;  // the start of extern shared memory
  // Whether blocks can order themselves, because there are fences of the device, acquires or
  // releases.
  bool orders_blocks = false;
  // Whether it has fence.proxy.async for all memory, or for global memory.
  bool fences_global_proxy = false;
  // Whether its CTAs wait for each other or distribute work, and so have to be co-resident
  // (simulator/decode/ordered_accesses.h).
  bool lives_together = false;
  // Whether it reads a clock. Then a loop that changes nothing else may still end.
  bool reads_clock = false;
  // [site]: an instruction that accesses global memory. The numbers are small enough for a stamp; 0
  // stands for any other instruction.
  std::vector<std::uint32_t> sites;

  // For each instruction: the watched registers that it reads and writes.
  std::vector<std::vector<RegisterUse>> reads;
  std::vector<std::vector<std::uint32_t>> writes;
  std::vector<std::vector<PartMove>> moves;  // an instruction with moves counts as one without
                                             // reads
  std::uint32_t watched = 0;

  std::uint32_t largest_setmaxnreg = 0;  // 0: there is none

  // For wgmma: its forms, by Inst::aux, and the number of registers that it uses. For each other
  // instruction, `touches` has the registers of wgmma that it accesses, as 2 * number, plus 1 for a
  // write.
  std::vector<MatrixForm> matrix_forms;
  std::uint32_t matrix_registers = 0;
  std::vector<std::vector<std::uint32_t>> touches;

  std::vector<std::string> refusals;  // the messages of unsupported instructions

  // For messages. The module outlives the program.
  const ptx::Module* module = nullptr;
  std::vector<const ptx::Function*> functions;        // [pc]
  std::vector<const ptx::Instruction*> instructions;  // [pc]
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_PROGRAM_PROGRAM_H_
