#ifndef ANNULUS_TOOLS_BENCH_SASS_H_
#define ANNULUS_TOOLS_BENCH_SASS_H_

// Machine code in the form that the cycle model of a sub-core (sub_core.h) needs: the effect of
// each instruction, its control bits from ptxas, and the instructions that a warp executes in one
// step of a kernel's main loop.
//
// NVIDIA publishes no encoding. In addition to the table of machine_code.h, the following was
// derived from listings of nvdisasm. Bit numbers refer to the 128-bit instruction:
//
//   105 ... 108   stall: cycles until the warp may issue its next instruction
//   109           0: the warp yields, so another warp is preferred in the next cycle
//   110 ... 112   scoreboard that is set until the result is written; 7: none
//   113 ... 115   scoreboard that is set until the operands are read; 7: none
//   116 ... 121   scoreboards that must be clear before the instruction is issued
//   HGMMA, QGMMA  53 ... 58: N / 8 - 1; 10: A is in registers; 84 ... 86: 0 if the product ends a
//                 group, else 7
//   BAR           77: arrives only; 9 ... 11: 2 if the barrier's number is in a register, 5 if it
//                 is in bits 54 ... 57
//   SYNCS         72: waits for a phase, else arrives
//   DEPBAR        44 ... 46: scoreboard; 38 ... 43: how often it may be set
//   BRA           91: taken only if the lanes of the warp have diverged
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
  kOther,         // uses only an issue slot: uniform datapath, NOP, WARPSYNC
  kFloat,         // FFMA, FMUL, FADD
  kInteger,       // IMAD, on the same pipe as kFloat
  kLogic,         // the ALU: FMNMX, F2FP, comparisons, selections, integer sums, shifts
  kSpecial,       // MUFU and conversions
  kShuffle,       // SHFL
  kShared,        // LDS, LDSM, STS, STSM
  kGlobal,        // LDG, STG
  kCopy,          // LDGSTS: cp.async
  kCopyGroup,     // LDGDEPBAR: its scoreboard covers the copies before it
  kSystem,        // S2R, S2UR, LDC
  kProduct,       // HMMA
  kGroupProduct,  // HGMMA, QGMMA
  // WARPGROUP.DEPBAR: waits until at most `pending` groups of products are unfinished.
  kGroupWait,
  kCountWait,  // DEPBAR: waits until `scoreboard` is set at most `pending` times
  kBarrier,    // BAR.SYNC
  kBarrierArrive,
  kPhaseWait,  // waits for an mbarrier
  kPhaseArrive,
  kFence,  // MEMBAR, ERRBAR, CCTL
  kBranch,
  kLeave,  // EXIT, CALL: never part of a loop
  kUnknown,
};

struct Sass {
  SassKind kind = SassKind::kOther;
  const char* name = "";     // the name in nvdisasm, without modifiers
  std::int64_t address = 0;  // in bytes from the kernel's first instruction
  int stall = 1;             // cycles
  bool yields = false;
  int write_scoreboard = -1;  // -1: none
  int read_scoreboard = -1;
  unsigned waits_for = 0;    // one bit for each scoreboard
  bool conditional = false;  // has a predicate
  bool never = false;        // has a predicate that is always false
  int columns = 0;           // N of a kGroupProduct
  bool rows_in_registers = false;
  bool ends_group = false;
  int pending = 0;  // used by kGroupWait and kCountWait
  int scoreboard = 0;
  int barrier = -1;          // number of a barrier; -1: in a register
  int wavefronts = 1;        // wavefronts of 128 bytes, for instructions that use shared memory
  std::int64_t target = -1;  // the index to which a kBranch leads
  bool diverging = false;    // a kBranch that a converged warp does not take
  bool taken = false;        // a kBranch that the step takes; read_step() sets it
};

// Decodes the instructions of one kernel of a cubin. Throws std::runtime_error if the cubin has no
// such kernel.
std::vector<Sass> decode_sass(std::span<const std::byte> cubin, std::string_view symbol,
                              jit::Arch arch);

// The instructions that a warp executes in one step of the main loop, in order, for a full tile in
// the middle of a row. `products` is the number of products in the step.
//
// The main loop is the loop around the first wait for products that leaves one group pending. In
// kernels without such waits it is the widest loop with products. The predicates of branches are
// unknown, so branches are followed by these rules:
//
//   out of the loop            not taken, because ptxas puts rare code after the kernel, such as
//                              the second and later tries of a wait for an mbarrier
//   forward inside the loop    taken if the skipped code only computes: masks, promotion of 8-bit
//                              sums. Not taken if the code has products, copies, barriers or
//                              waits, because every step has these
//   back inside the loop       if the body has products, taken until the step has `products` of
//                              them; otherwise not taken
//
// Throws std::runtime_error if there is no main loop, if it has an instruction of unknown effect,
// or if the number of products cannot be reached.
std::vector<Sass> read_step(std::span<const Sass> code, int products);

}  // namespace annulus::bench

#endif  // ANNULUS_TOOLS_BENCH_SASS_H_
