#ifndef ANNULUS_SIMULATOR_PROGRAM_PROGRAM_H_
#define ANNULUS_SIMULATOR_PROGRAM_PROGRAM_H_

// A kernel decoded for the interpreter: flat code whose operands are byte offsets into a warp's
// register file. Immediates and special registers are slots of that file too, filled before the
// warp starts, so a handler never asks what kind of operand it has.
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

// What an access to global memory orders besides itself (PTX ISA 9.0, section 8.7). All but the
// weak ones are strong; those called kBlock have a scope below the device, and so are weak for
// other blocks.
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

// Executes one instruction for the lanes of `mask` (never empty).
using Handler = void (*)(Warp& warp, const Inst& inst, Mask mask);

// What the loop that runs a warp has to do itself. Everything else is done by the handler.
enum class Flow : std::uint8_t {
  kPlain,
  kBranch,  // target = inst.target
  kCall,    // target = inst.target
  kReturn,
  kExit,
  kBarrier,  // the handler says in Warp::pause whether the lanes wait
  kOrdered,  // an access that happens in the order of clocks where CTAs live together
};

// Which lanes must have come to an instruction before it runs.
enum class Convergence : std::uint8_t {
  kNone,
  kWarp,    // .aligned: every lane; a barrier does without those that have exited
  kMembers  // .sync: the lanes of the member mask operand inst.members
};

// Classes of instructions, each with a counter of its own.
enum class Class : std::uint8_t {
#define CLASS_COUNTER(name, class, meaning) class,
#include "annulus/counters.def"
  kCount
};

constexpr std::uint32_t kNoSlot = 0xffffffffu;

enum Watch : std::uint8_t {
  kWatchWritten = 1,  // a source may be read before it is written on some path
  kWatchMatrix = 2    // it is no wgmma, but touches a register that a wgmma uses
};

struct Inst {
  Handler run[2] = {nullptr, nullptr};  // in fast mode, in checked mode
  std::uint32_t d = kNoSlot;            // destination slot
  std::uint32_t a = kNoSlot;            // source slots
  std::uint32_t b = kNoSlot;
  std::uint32_t c = kNoSlot;
  std::int64_t imm = 0;   // an address offset, a table, or what else the handler needs
  std::uint32_t aux = 0;  // often an index into Program::slots; the handler says
  std::uint32_t guard = kNoSlot;
  std::uint32_t members = kNoSlot;  // slot of the member mask
  std::uint32_t target = 0;
  Flow flow = Flow::kPlain;
  Convergence convergence = Convergence::kNone;
  Class kind = Class::kOther;
  std::uint8_t guard_negated = 0;
  MemoryOrder order = MemoryOrder::kWeak;
  bool compared = false;       // a load, see simulator/decode/compared_loads.h
  bool polls = false;          // a branch back, see simulator/decode/polling_loops.h
  std::uint16_t site = 0;      // see Program::sites
  std::uint8_t watch = 0;      // what checked mode looks at before it runs, see Watch
  std::uint8_t small[5] = {};  // modifiers; each handler says which is where
};

// A slot that holds the same constant for all lanes.
struct Constant {
  std::uint32_t slot = 0;
  std::uint64_t bits = 0;
  int bytes = 4;  // per lane: 2, 4 or 8
};

// The special registers (specials.def): first the vectors, three registers each, so that the
// register of a vector in a dimension is 3 * vector + dimension; then the others.
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
  std::uint32_t reg = 0;      // for the message
  bool passed_on = false;     // to shared memory or another lane, and used for nothing else here
};

// For checked mode: a part of a register becomes as defined as one or two others are that move
// there. Parts are numbered; kNoSlot in place of one that is defined.
struct PartMove {
  std::uint32_t to = 0;
  std::uint32_t from = kNoSlot;
  std::uint32_t also = kNoSlot;
  bool selects = false;  // selp: in each lane either `from` or `also` moves, as Inst::c chooses
};

// What the driver needs to know about a kernel.
struct KernelInfo {
  std::string name;
  int target = 0;  // the architecture that its PTX is for: 80 for sm_80, 90 for sm_90a
  std::vector<std::uint32_t> parameter_offsets;  // in the parameter block, one per parameter
  std::vector<std::uint32_t> parameter_sizes;    // in bytes
  std::uint32_t parameter_bytes = 0;             // of the whole block
  std::uint32_t static_shared_bytes = 0;
  std::uint32_t local_bytes = 0;     // per thread
  std::uint32_t max_threads = 1024;  // .maxntid, else 1024
  // An estimate, since those of PTX are virtual: as many as hold values at once, at most 255.
  std::uint32_t registers = 0;
  // The registers of a thread at launch, from which setmaxnreg starts. 0 where the kernel gives
  // nothing from which they follow (run/load.cc).
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
  std::uint32_t register_bytes = 0;         // of one warp's file
  std::uint32_t dynamic_shared_offset = 0;  // where extern shared memory starts
  // Whether blocks can order themselves, because there are fences of the device, acquires or
  // releases.
  bool orders_blocks = false;
  // It has fence.proxy.async for all memory, or for global memory.
  bool fences_global_proxy = false;
  // Whether its CTAs wait for each other or deal out work, and so have to live together
  // (simulator/decode/ordered_accesses.h).
  bool lives_together = false;
  // Whether it reads a clock, so that a loop which changes nothing else may end all the same.
  bool reads_clock = false;
  // [site]: an instruction that touches global memory. The numbers have few enough bits for a
  // stamp; 0 stands for any other instruction.
  std::vector<std::uint32_t> sites;

  // Per instruction: the watched registers it reads and writes.
  std::vector<std::vector<RegisterUse>> reads;
  std::vector<std::vector<std::uint32_t>> writes;
  std::vector<std::vector<PartMove>> moves;  // an instruction that has some reads nothing
  std::uint32_t watched = 0;

  std::uint32_t largest_setmaxnreg = 0;  // 0: there is none

  // For wgmma: its forms, by Inst::aux; how many registers it uses, which are numbered; and for
  // each other instruction those that it touches, as 2 * number, plus 1 for a write.
  std::vector<MatrixForm> matrix_forms;
  std::uint32_t matrix_registers = 0;
  std::vector<std::vector<std::uint32_t>> touches;

  std::vector<std::string> refusals;  // what is said at instructions that are not modelled

  // For messages. The module outlives the program.
  const ptx::Module* module = nullptr;
  std::vector<const ptx::Function*> functions;        // per instruction
  std::vector<const ptx::Instruction*> instructions;  // per instruction
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_PROGRAM_PROGRAM_H_
