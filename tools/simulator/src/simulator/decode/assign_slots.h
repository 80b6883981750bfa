#ifndef ANNULUS_SIMULATOR_DECODE_ASSIGN_SLOTS_H_
#define ANNULUS_SIMULATOR_DECODE_ASSIGN_SLOTS_H_

// Lets registers whose lives do not overlap share a slot of the register file. PTX registers are
// virtual, and a kernel has thousands of them. Without sharing, the file of a warp takes half a
// megabyte, and every operand comes from the second-level cache.

#include <cstdint>
#include <vector>

namespace annulus::simulator {

// The properties of one instruction that the analysis needs.
struct Liveness {
  std::vector<std::uint32_t> reads;  // register numbers
  std::vector<std::uint32_t> writes;
  std::vector<std::uint32_t> keeps;  // asynchronous results, which never share their slots
  bool guarded = false;              // writes may be skipped, and control may continue after it
  bool falls_through = true;
  std::uint32_t target = 0xffffffffu;  // the target of a branch
};

struct Assignment {
  std::vector<std::uint32_t> slots;  // by register number; all ones if the register is never used
  std::uint32_t bytes = 0;
};

// bits[r] is the width of register r: 1, 16, 32 or 64. Registers share a slot only with registers
// of the same width. So a source and the destination may have the same slot if a handler reads and
// writes lane by lane. A register lives from the first to the last instruction at which any path
// still needs it, and past the instruction that writes it, even if it is never read.
//
// Requires: a single function without calls, because registers of a caller would live during the
// call. Divergence needs no extra edges: each lane has its own part of a slot, and its control
// follows the edges of `code`.
Assignment assign_slots(const std::vector<Liveness>& code, const std::vector<int>& bits);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_DECODE_ASSIGN_SLOTS_H_
