#include <algorithm>

#include "simulator/decode/decoder.h"

namespace annulus::simulator {

namespace {

using Set = std::vector<std::uint64_t>;  // of registers, a bit each

bool contains(const Set& set, std::uint32_t reg) {
  return ((set[reg / 64] >> (reg % 64)) & 1) != 0;
}

// Forward data flow over the instructions: which registers are assigned on every path to each.
class Assigned {
 public:
  Assigned(const std::vector<Inst>& code, std::size_t registers)
      : code_(code), nothing_(std::max<std::size_t>((registers + 63) / 64, 1), 0) {
    before_.resize(code.size());
  }

  // Control may come here with nothing assigned.
  void enter(std::uint32_t pc) { reach(pc, nothing_); }

  // Iterates to a fixed point. writes[pc] are the registers that an instruction writes.
  void run(const std::vector<std::vector<std::uint32_t>>& writes) {
    while (!work_.empty()) {
      const std::uint32_t pc = work_.back();
      work_.pop_back();
      Set set = before_[pc];
      const Inst& inst = code_[pc];
      const bool always = inst.guard == kNoSlot;
      if (always) {
        for (std::uint32_t reg : writes[pc]) set[reg / 64] |= std::uint64_t{1} << (reg % 64);
      }
      if (inst.flow == Flow::kBranch) reach(inst.target, set);
      const bool leaves =
          inst.flow == Flow::kBranch || inst.flow == Flow::kReturn || inst.flow == Flow::kExit;
      if (!always || !leaves) reach(pc + 1, set);
    }
  }

  // The registers that are assigned before the instruction; empty where it is never reached.
  const Set& before(std::size_t pc) const { return before_[pc]; }

 private:
  void reach(std::uint32_t pc, const Set& set) {
    if (pc >= code_.size()) return;
    Set& known = before_[pc];
    if (known.empty()) {
      known = set;
      work_.push_back(pc);
      return;
    }
    bool changed = false;
    for (std::size_t i = 0; i < known.size(); ++i) {
      const std::uint64_t both = known[i] & set[i];
      changed |= both != known[i];
      known[i] = both;
    }
    if (changed) work_.push_back(pc);
  }

  const std::vector<Inst>& code_;
  const Set nothing_;
  std::vector<Set> before_;
  std::vector<std::uint32_t> work_;
};

}  // namespace

// Finds the registers that may be read before they are written. Those that are not assigned on
// every path are watched at run time in checked mode, lane by lane; the others cost nothing.
void Decoder::watch_registers() {
  const std::size_t count = program_->code.size();
  program_->reads.resize(count);
  program_->writes.resize(count);
  Assigned assigned(program_->code, register_count_);
  assigned.enter(0);
  // Every function is entered with nothing assigned, as it reads and writes only its own registers.
  for (const ptx::Function* function : order_) assigned.enter(frames_.at(function->name).start);
  assigned.run(writes_);
  std::vector<std::uint32_t> watched(register_count_, kNoSlot);
  for (std::size_t pc = 0; pc < count; ++pc) {
    if (assigned.before(pc).empty()) continue;
    for (std::uint32_t reg : reads_[pc]) {
      if (contains(assigned.before(pc), reg)) continue;
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

// Notes for every instruction but wgmma which registers of wgmma it touches.
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

}  // namespace annulus::simulator
