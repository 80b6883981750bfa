#ifndef ANNULUS_TOOLS_BENCH_SASS_H_
#define ANNULUS_TOOLS_BENCH_SASS_H_

// Machine code as the cycle model of a sub-core needs it (sub_core.h): what each instruction does,
// the control bits that ptxas gave it, and which instructions a warp executes in one step of a
// kernel's main loop.
//
// NVIDIA publishes no encoding. On top of what machine_code.h has, the following was read off
// listings of nvdisasm; bit numbers are those of the 128-bit instruction:
//
//   105 ... 108   stall: cycles until the warp may issue its next instruction
//   109           0: the warp yields, so that another one is preferred in the next cycle
//   110 ... 112   scoreboard that is set until the result is written; 7: none
//   113 ... 115   scoreboard that is set until the operands are read; 7: none
//   116 ... 121   scoreboards that must be clear before the instruction is issued
//   HGMMA, QGMMA  53 ... 58: N / 8 - 1; 10: A is in registers; 84 ... 86: 0 where the product ends
//                 a group, else 7
//   BAR           77: arrives only; 9 ... 11: 2 where the barrier's number is in a register, 5
//                 where it is bits 54 ... 57
//   SYNCS         72: waits for a phase, else arrives
//   DEPBAR        44 ... 46: scoreboard; 38 ... 43: how often it may be set
//   BRA           91: leaves only where the lanes of the warp have diverged
//   memory        72 ... 73 of LDSM, STSM: log2 of the matrices; 73 ... 75 of LDS, STS: 4, 5, 6 for
//                 32, 64, 128 bits
//
// The opcodes are a table in sass.cc.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "jit/arch.h"
#include "machine_code.h"

namespace annulus::bench {

enum class SassKind {
  kOther,         // takes an issue slot and nothing else: uniform datapath, NOP, WARPSYNC
  kFloat,         // FFMA, FMUL, FADD
  kInteger,       // IMAD, which shares a pipe with kFloat
  kLogic,         // the ALU: FMNMX, F2FP, comparisons, selections, integer sums, shifts
  kSpecial,       // MUFU and conversions
  kShuffle,       // SHFL
  kShared,        // LDS, LDSM, STS, STSM
  kGlobal,        // LDG, STG
  kCopy,          // LDGSTS: cp.async
  kCopyGroup,     // LDGDEPBAR: its scoreboard stands for the copies before it
  kSystem,        // S2R, S2UR, LDC
  kProduct,       // HMMA
  kGroupProduct,  // HGMMA, QGMMA
  kGroupWait,     // WARPGROUP.DEPBAR: at most `pending` groups of products are under way
  kCountWait,     // DEPBAR: `scoreboard` is set at most `pending` times
  kBarrier,       // BAR.SYNC
  kBarrierArrive,
  kPhaseWait,  // of an mbarrier
  kPhaseArrive,
  kFence,  // MEMBAR, ERRBAR, CCTL
  kBranch,
  kLeave,  // EXIT, CALL: no part of a loop
  kUnknown,
};

struct Sass {
  SassKind kind = SassKind::kOther;
  const char* name = "";     // as nvdisasm writes it, without its modifiers
  std::int64_t address = 0;  // in bytes from the kernel's first instruction
  int stall = 1;             // cycles
  bool yields = false;
  int write_scoreboard = -1;  // -1: none
  int read_scoreboard = -1;
  unsigned waits_for = 0;    // a bit for each scoreboard
  bool conditional = false;  // has a predicate
  bool never = false;        // has a predicate that is always false
  int columns = 0;           // N of a kGroupProduct
  bool rows_in_registers = false;
  bool ends_group = false;
  int pending = 0;  // of kGroupWait and kCountWait
  int scoreboard = 0;
  int barrier = -1;          // number of a barrier; -1: in a register
  int wavefronts = 1;        // of 128 bytes, of instructions that use shared memory
  std::int64_t target = -1;  // index that a kBranch leads to
  bool diverging = false;    // a kBranch that a converged warp does not take
  bool taken = false;        // a kBranch that the step takes; set by read_step
};

// Decodes the instructions of one kernel of a cubin. Throws std::runtime_error where it has no such
// kernel.
std::vector<Sass> decode_sass(std::span<const std::byte> cubin, std::string_view symbol,
                              jit::Arch arch);

// The instructions that a warp executes in one step of the main loop, in order, for a full tile in
// the middle of a row. `products` is the number of products of the step.
//
// The main loop is the one around the first wait for products that leaves one group pending; in
// kernels without such waits it is the widest one that has products. Branches are followed without
// knowing their predicates:
//
//   out of the loop            not taken: ptxas puts what is rare behind the kernel, such as the
//                              second and later tries of a wait for an mbarrier
//   forward inside the loop    taken where the skipped code only computes: masks, promotion of
//                              8-bit sums. Not taken where it has products, copies, barriers or
//                              waits, which every step has
//   back inside the loop       where the body has products, taken until the step has its number of
//                              them; else not taken
//
// Throws std::runtime_error where there is no main loop, where it has an instruction of unknown
// effect, or where the number of products cannot be reached.
std::vector<Sass> read_step(std::span<const Sass> code, int products);

}  // namespace annulus::bench

#endif  // ANNULUS_TOOLS_BENCH_SASS_H_
