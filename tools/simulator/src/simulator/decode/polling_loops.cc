#include "simulator/decode/polling_loops.h"

#include <cstddef>

namespace annulus::simulator {
namespace {

bool is_poll(const Program& program, std::size_t pc) {
  const Inst& inst = program.code[pc];
  const bool load = inst.kind == Class::kGlobalLoad || inst.kind == Class::kSharedLoad;
  return (load && inst.order != MemoryOrder::kWeak) ||
         (inst.kind == Class::kAtomic && inst.d != kNoSlot) || inst.kind == Class::kBarrier ||
         inst.flow == Flow::kCall || program.instructions[pc]->opcode == "nanosleep";
}

}  // namespace

void mark_polling_loops(Program& program) {
  std::vector<std::size_t> before = {0};  // [pc]: the number of polls before it
  for (std::size_t pc = 0; pc < program.code.size(); ++pc) {
    Inst& inst = program.code[pc];
    before.push_back(before[pc] + (is_poll(program, pc) ? 1 : 0));
    if (inst.flow != Flow::kBranch || inst.target > pc) continue;
    inst.polls = before[pc + 1] > before[inst.target];
  }
}

}  // namespace annulus::simulator
