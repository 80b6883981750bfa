#ifndef ANNULUS_SIMULATOR_DECODE_ASSIGN_SLOTS_H_
#define ANNULUS_SIMULATOR_DECODE_ASSIGN_SLOTS_H_

// Lets registers whose lives do not overlap share a slot of the register file. PTX registers are
// virtual, thousands of them; without sharing, a warp's file is half a megabyte and every operand
// comes from the second-level cache.

#include <cstdint>
#include <vector>

namespace annulus::simulator {

// What the analysis needs of one instruction.
struct Liveness {
  std::vector<std::uint32_t> reads;  // register numbers
  std::vector<std::uint32_t> writes;
  std::vector<std::uint32_t> keeps;  // an asynchronous result: these share their slot with nobody
  bool guarded = false;              // writes may not happen, and control may fall through
  bool falls_through = true;
  std::uint32_t target = 0xffffffffu;  // of a branch
};

struct Assignment {
  std::vector<std::uint32_t> slots;  // by register number; all ones where it is never used
  std::uint32_t bytes = 0;
};

// bits[r] is the width of register r: 1, 16, 32 or 64. Registers share a slot only with others of
// their width, so a handler that reads and writes lane by lane may have both in one place. A
// register lives from the first to the last instruction at which any path still needs it, and
// past the one that writes it, whether or not anyone reads it.
Assignment assign_slots(const std::vector<Liveness>& code, const std::vector<int>& bits);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_DECODE_ASSIGN_SLOTS_H_
