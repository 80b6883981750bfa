#include "sim/decode.h"

namespace annulus::sim {

// Which registers can be read before they are written? Those that are not definitely assigned on
// every path are watched at run time by the checked twin, lane by lane; the rest cost nothing.
void Decoder::watch_registers() {
  const std::size_t count = program_->code.size();
  const std::size_t words = (register_count_ + 63) / 64;
  program_->reads.resize(count);
  program_->writes.resize(count);
  using Set = std::vector<std::uint64_t>;
  std::vector<Set> assigned(count);  // before each instruction; empty: not reached yet
  std::vector<std::uint32_t> work;
  const auto reach = [&](std::uint32_t pc, const Set& set) {
    if (pc >= count) return;
    Set& known = assigned[pc];
    if (known.empty()) {
      known = set;
      work.push_back(pc);
      return;
    }
    bool changed = false;
    for (std::size_t i = 0; i < words; ++i) {
      const std::uint64_t both = known[i] & set[i];
      changed |= both != known[i];
      known[i] = both;
    }
    if (changed) work.push_back(pc);
  };
  reach(0, Set(std::max<std::size_t>(words, 1), 0));
  // A function is entered with nothing assigned: its own registers are what it may read.
  for (const ptx::Function* function : order_) {
    reach(frames_.at(function->name).start, Set(std::max<std::size_t>(words, 1), 0));
  }
  while (!work.empty()) {
    const std::uint32_t pc = work.back();
    work.pop_back();
    Set set = assigned[pc];
    const Inst& inst = program_->code[pc];
    if (inst.guard == kNoSlot) {
      for (std::uint32_t reg : writes_[pc]) set[reg / 64] |= std::uint64_t{1} << (reg % 64);
    }
    const bool always = inst.guard == kNoSlot;
    if (inst.flow == Flow::kBranch) reach(inst.target, set);
    if (!(always &&
          (inst.flow == Flow::kBranch || inst.flow == Flow::kReturn || inst.flow == Flow::kExit))) {
      reach(pc + 1, set);
    }
  }
  std::vector<std::uint32_t> watched(register_count_, kNoSlot);
  for (std::size_t pc = 0; pc < count; ++pc) {
    if (assigned[pc].empty()) continue;
    for (std::uint32_t reg : reads_[pc]) {
      if ((assigned[pc][reg / 64] >> (reg % 64)) & 1) continue;
      if (watched[reg] == kNoSlot) watched[reg] = program_->watched++;
    }
  }
  if (program_->watched == 0) return;
  for (std::size_t pc = 0; pc < count; ++pc) {
    for (std::uint32_t reg : reads_[pc]) {
      if (watched[reg] != kNoSlot) program_->reads[pc].push_back({watched[reg], reg});
    }
    for (std::uint32_t reg : writes_[pc]) {
      if (watched[reg] != kNoSlot) program_->writes[pc].push_back(watched[reg]);
    }
    if (!program_->reads[pc].empty() || !program_->writes[pc].empty()) {
      program_->code[pc].watch |= kWatchWritten;
    }
  }
}

// The instructions other than wgmma that touch a register of wgmma.
void Decoder::watch_matrix_registers() {
  program_->matrix_registers = static_cast<std::uint32_t>(matrix_registers_.size());
  program_->touches.resize(program_->code.size());
  if (matrix_registers_.empty()) return;
  for (std::size_t pc = 0; pc < program_->code.size(); ++pc) {
    if (program_->instructions[pc]->opcode == "wgmma") continue;
    std::vector<std::uint32_t>& touches = program_->touches[pc];
    const auto add = [&](const std::vector<std::uint32_t>& registers, std::uint32_t write) {
      for (const std::uint32_t reg : registers) {
        const auto found = matrix_registers_.find(reg);
        if (found != matrix_registers_.end()) touches.push_back(2 * found->second + write);
      }
    };
    add(reads_[pc], 0);
    add(writes_[pc], 1);
    if (!touches.empty()) program_->code[pc].watch |= kWatchMatrix;
  }
}

}  // namespace annulus::sim
