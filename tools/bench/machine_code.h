#ifndef ANNULUS_TOOLS_BENCH_MACHINE_CODE_H_
#define ANNULUS_TOOLS_BENCH_MACHINE_CODE_H_

// Reads the main loop of a kernel of the wgmma family from its machine code. It reads the cubin
// itself, and also the output of nvdisasm, so that the two can be compared.
//
// Since sm_70 an instruction has 128 bits. NVIDIA publishes no encoding. The following table was
// derived from listings of nvdisasm:
//
//   bits   0 ... 11   opcode: 0x947 BRA, 0x308 MUFU, 0x9c5 WARPGROUP; bits 0 ... 8 alone: 0x1f0
//                     HGMMA, 0x1f3 QGMMA; fences of memory beyond the CTA: 0x992 MEMBAR,
//                     0x9ab ERRBAR, 0x5ab CGAERRBAR, 0x98f CCTL
//   bits  12 ... 15   predicate; 7: always
//   BRA               bits 34 ... 81, then 16 ... 23: distance from the next instruction, in words
//                     of four bytes, signed; before sm_90 bits 34 ... 81 alone
//   MUFU              bits 74 ... 77: 2 is EX2
//   WARPGROUP         bit 47: DEPBAR, which leaves a number of groups pending: bits 72 ... 74

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace annulus::bench {

inline constexpr std::size_t kInstructionBytes = 16;

// The two halves of an instruction, with the lower one first.
using InstructionWords = std::array<std::uint64_t, 2>;

// The instructions of one kernel of a cubin. Throws std::runtime_error if the cubin has no such
// kernel.
std::vector<InstructionWords> instruction_words(std::span<const std::byte> cubin,
                                                std::string_view symbol);

// Bits [first, first + count) of an instruction. Requires: count < 64.
std::uint64_t instruction_bits(const InstructionWords& words, int first, int count);

// The index of the instruction to which a BRA at `index` leads. The code is for sm_90, or for an
// older architecture if `arch` is below 90.
std::int64_t branch_target(const InstructionWords& words, std::int64_t index, int arch = 90);

enum class Opcode { kOther, kProduct, kPower, kWait, kBranch, kFence, kGlobalLoad };

struct Instruction {
  Opcode opcode = Opcode::kOther;
  bool conditional = false;
  int pending = 0;           // kWait: the number of groups that may still run
  std::int64_t target = -1;  // kBranch: the index of the target instruction
};

// Counts of instructions in the loop that contains the wait for the scores. Code that a forward
// branch inside the loop can skip (masks, the end of K) is not counted, because a full tile skips
// it.
struct MainLoop {
  int instructions = 0;
  int products = 0;  // HGMMA, or QGMMA with 8-bit elements
  int powers = 0;    // MUFU.EX2
  // Powers between the wait for the scores and the wait for the output.
  int powers_under_values = 0;
  int fences = 0;        // MEMBAR, ERRBAR, CCTL: each would stall softmax for hundreds of cycles
  int global_loads = 0;  // LDG

  friend bool operator==(const MainLoop&, const MainLoop&) = default;
};

// Decodes the instructions of one kernel of a cubin. Throws std::runtime_error if the cubin has no
// such kernel.
std::vector<Instruction> decode(std::span<const std::byte> cubin, std::string_view symbol);

// Decodes the instructions from the output of `nvdisasm -c` for a cubin with one kernel.
std::vector<Instruction> decode_listing(const std::string& text);

// Throws std::runtime_error if there is no such loop.
MainLoop read_main_loop(std::span<const Instruction> code);

// Runs a disassembler on a cubin. Throws std::runtime_error if it fails.
std::string disassemble(const std::string& nvdisasm, std::span<const std::byte> cubin);

}  // namespace annulus::bench

#endif  // ANNULUS_TOOLS_BENCH_MACHINE_CODE_H_
