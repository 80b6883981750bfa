#include "simulator/decode/ordered_accesses.h"

#include <algorithm>
#include <cstddef>

namespace annulus::simulator {
namespace {

// An access with a generic address counts, whatever space it is in. Atomics with a scope within the
// block are weak here. A red has no result, so no thread learns anything from it.
bool is_ordered(const Inst& inst) {
  if (inst.flow != Flow::kPlain || !strong_for_device(inst.order)) return false;
  if (inst.kind == Class::kGlobalLoad) return true;
  constexpr std::uint8_t kShared = 2;  // ops/atomic.cc
  return inst.kind == Class::kAtomic && inst.d != kNoSlot && inst.small[3] != kShared;
}

// [pc]: whether a thread may run the instruction more than once. In a function, every instruction
// may, because the callers are not examined.
std::vector<bool> repeated(const Program& program) {
  std::vector<bool> result(program.code.size(), false);
  for (std::size_t pc = 0; pc < program.code.size(); ++pc) {
    const Inst& inst = program.code[pc];
    if (program.functions[pc] != program.functions[0]) result[pc] = true;
    if (inst.flow != Flow::kBranch || inst.target > pc) continue;
    std::fill(result.begin() + inst.target, result.begin() + static_cast<std::ptrdiff_t>(pc), true);
  }
  return result;
}

}  // namespace

void mark_ordered_accesses(Program& program) {
  const std::vector<bool> again = repeated(program);
  for (std::size_t pc = 0; pc < program.code.size(); ++pc) {
    Inst& inst = program.code[pc];
    if (!is_ordered(inst)) continue;
    inst.flow = Flow::kOrdered;
    program.lives_together |= again[pc];
  }
}

}  // namespace annulus::simulator
