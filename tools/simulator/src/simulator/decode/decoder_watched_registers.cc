#include <algorithm>

#include "simulator/decode/decoder.h"

namespace annulus::simulator {

namespace {

using Set = std::vector<std::uint64_t>;  // a set of parts of registers, one bit each

bool contains(const Set& set, std::uint32_t part) {
  return ((set[part / 64] >> (part % 64)) & 1) != 0;
}

void insert(Set& set, std::uint32_t part) { set[part / 64] |= std::uint64_t{1} << (part % 64); }

// The moves of an instruction that only moves values. An undefined value is moved without a fault:
// compilers leave the upper half of a register undefined if they use only the lower half.
using Moves = std::vector<PartMove>;

// The parts of registers. Each register has a low part, which has the register's number, and a high
// part. Registers that no move splits or joins have only one part.
class Parts {
 public:
  explicit Parts(std::uint32_t registers)
      : high_(registers), same_(registers), halves_(registers), count_(registers) {
    for (std::uint32_t reg = 0; reg < registers; ++reg) high_[reg] = same_[reg] = reg;
  }
  // First step: find the registers that have halves. Copies of such registers have halves too.
  void split(std::uint32_t reg) { halves_[root(reg)] = true; }
  void join(std::uint32_t one, std::uint32_t other) {
    one = root(one);
    other = root(other);
    same_[one] = other;
    halves_[other] = halves_[other] || halves_[one];
  }
  // Second step: number the parts.
  void number() {
    for (std::uint32_t reg = 0; reg < high_.size(); ++reg) {
      if (halves_[root(reg)]) high_[reg] = count_++;
    }
  }
  bool is_split(std::uint32_t reg) const { return high_[reg] != reg; }
  std::uint32_t low(std::uint32_t reg) const { return reg; }
  std::uint32_t high(std::uint32_t reg) const { return high_[reg]; }
  std::uint32_t count() const { return count_; }
  template <typename Visit>
  void each(std::uint32_t reg, Visit visit) const {
    visit(reg);
    if (is_split(reg)) visit(high_[reg]);
  }

 private:
  std::uint32_t root(std::uint32_t reg) {
    while (same_[reg] != reg) reg = same_[reg] = same_[same_[reg]];
    return reg;
  }

  std::vector<std::uint32_t> high_;
  std::vector<std::uint32_t> same_;  // a forest: the registers of a tree are copies of each other
  std::vector<bool> halves_;         // valid for the root of a tree
  std::uint32_t count_;
};

// A forward data flow over the instructions: the parts that are assigned on every path to each of
// them.
class Assigned {
 public:
  Assigned(const std::vector<Inst>& code, const std::vector<Moves>& moves, std::size_t parts)
      : code_(code), moves_(moves), nothing_(std::max<std::size_t>((parts + 63) / 64, 1), 0) {
    before_.resize(code.size());
  }

  // Control may reach this instruction with nothing assigned.
  void enter(std::uint32_t pc) { reach(pc, nothing_); }

  // Iterates to a fixed point. writes[pc] has the registers that an instruction writes.
  void run(const std::vector<std::vector<std::uint32_t>>& writes, const Parts& parts) {
    while (!work_.empty()) {
      const std::uint32_t pc = work_.back();
      work_.pop_back();
      Set set = before_[pc];
      const Inst& inst = code_[pc];
      const bool always = inst.guard == kNoSlot;
      if (!moves_[pc].empty()) {
        move(set, before_[pc], moves_[pc], always);
      } else if (always) {
        for (std::uint32_t reg : writes[pc]) {
          parts.each(reg, [&](std::uint32_t part) { insert(set, part); });
        }
      }
      if (inst.flow == Flow::kBranch) reach(inst.target, set);
      const bool leaves =
          inst.flow == Flow::kBranch || inst.flow == Flow::kReturn || inst.flow == Flow::kExit;
      if (!always || !leaves) reach(pc + 1, set);
    }
  }

  // The parts that are assigned before the instruction; empty if it is never reached.
  const Set& before(std::size_t pc) const { return before_[pc]; }

 private:
  // If the instruction is guarded, a part that it writes is assigned afterwards only if it was
  // before and the moved value is too.
  static void move(Set& set, const Set& before, const Moves& moves, bool always) {
    for (const PartMove& one : moves) {
      const bool known = (one.from == kNoSlot || contains(before, one.from)) &&
                         (one.also == kNoSlot || contains(before, one.also)) &&
                         (always || contains(before, one.to));
      if (known) {
        insert(set, one.to);
      } else {
        set[one.to / 64] &= ~(std::uint64_t{1} << (one.to % 64));
      }
    }
  }

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
  const std::vector<Moves>& moves_;
  const Set nothing_;
  std::vector<Set> before_;
  std::vector<std::uint32_t> work_;
};

bool is_register(const ptx::Operand& operand) {
  return operand.kind == ptx::OperandKind::kRegister;
}

// The moves of a mov, a cvt, a shift or a selp that changes no bits: a whole register, one of two
// registers, the halves of a register from or to others, or one half. There are none for any other
// instruction.
class MovesOf {
 public:
  MovesOf(const ptx::Function& function, const ptx::Instruction& source, std::uint32_t first)
      : function_(function), source_(source), first_(first) {}

  // Splits the registers whose halves are moved.
  void split(Parts& parts) const {
    if (packs() || unpacks()) parts.split(number(whole()));
    if (truncates() || takes_upper()) parts.split(number(source_.operands[1]));
    if (copies()) parts.join(number(source_.operands[0]), number(source_.operands[1]));
    if (selects()) {
      for (const std::size_t i : {1, 2}) {
        const ptx::Operand& choice = source_.operands[i];
        if (is_register(choice)) parts.join(number(source_.operands[0]), number(choice));
      }
    }
  }

  // selp reads its predicate. Of the two other sources it reads only the one that it moves.
  bool selects() const {
    return source_.opcode == "selp" && source_.operands.size() == 4 &&
           is_register(source_.operands[0]);
  }

  Moves take(const Parts& parts) const {
    Moves moves;
    const auto whole_of = [&](const ptx::Operand& operand) {
      return is_register(operand) ? Half{parts.low(number(operand)), parts.high(number(operand))}
                                  : Half{kNoSlot, kNoSlot};
    };
    const auto add = [&](std::uint32_t to, Half from) {
      moves.push_back({to, from.low, from.high == from.low ? kNoSlot : from.high, false});
    };
    const auto add_all = [&](const ptx::Operand& to, Half from) {
      if (!is_register(to)) return;
      parts.each(number(to), [&](std::uint32_t part) { add(part, from); });
    };
    if (copies()) {
      const Half to = whole_of(source_.operands[0]);
      const Half from = whole_of(source_.operands[1]);
      add(to.low, {from.low, from.low});
      if (to.high != to.low) add(to.high, {from.high, from.high});
    } else if (selects()) {
      const Half to = whole_of(source_.operands[0]);
      const Half one = whole_of(source_.operands[1]);
      const Half other = whole_of(source_.operands[2]);
      moves.push_back({to.low, one.low, other.low, true});
      if (to.high != to.low) moves.push_back({to.high, one.high, other.high, true});
      return moves;
    } else if (packs()) {
      const Half to = whole_of(whole());
      const std::vector<ptx::Operand>& elements = source_.operands[1].elements;
      for (std::size_t i = 0; i < elements.size(); ++i) {
        const bool low = i < elements.size() / 2;
        add(low ? to.low : to.high, whole_of(elements[i]));
      }
    } else if (unpacks()) {
      const Half from = whole_of(whole());
      const std::vector<ptx::Operand>& elements = source_.operands[0].elements;
      for (std::size_t i = 0; i < elements.size(); ++i) {
        const std::uint32_t half = i < elements.size() / 2 ? from.low : from.high;
        add_all(elements[i], {half, half});
      }
    } else if (truncates()) {
      const std::uint32_t low = parts.low(number(source_.operands[1]));
      add_all(source_.operands[0], {low, low});
    } else if (takes_upper()) {
      const std::uint32_t high = parts.high(number(source_.operands[1]));
      add_all(source_.operands[0], {high, high});
    }
    return merged(std::move(moves));
  }

 private:
  struct Half {
    std::uint32_t low;
    std::uint32_t high;
  };

  // Joins several values that make up one half. The half is assigned if all of them are. A half of
  // four values has two values, each of which has one part.
  static Moves merged(Moves moves) {
    Moves result;
    for (const PartMove& one : moves) {
      if (!result.empty() && result.back().to == one.to) {
        if (one.from != kNoSlot) {
          (result.back().from == kNoSlot ? result.back().from : result.back().also) = one.from;
        }
      } else {
        result.push_back(one);
      }
    }
    return result;
  }

  bool is_move() const { return source_.opcode == "mov" && source_.operands.size() == 2; }
  bool copies() const {
    return is_move() && is_register(source_.operands[0]) && is_register(source_.operands[1]) &&
           bits(source_.operands[0]) > 1;
  }
  bool packs() const {
    return is_move() && is_register(source_.operands[0]) &&
           source_.operands[1].kind == ptx::OperandKind::kVector &&
           simple(source_.operands[1].elements);
  }
  bool unpacks() const {
    return is_move() && is_register(source_.operands[1]) &&
           source_.operands[0].kind == ptx::OperandKind::kVector &&
           simple(source_.operands[0].elements);
  }
  // Two or four values. Registers of 32 bits that are packed have no halves here.
  bool simple(const std::vector<ptx::Operand>& elements) const {
    return elements.size() == 2 || (elements.size() == 4 && source_.has("b64"));
  }
  // cvt.u32.u64 and the like copy the lower half unchanged.
  bool truncates() const {
    if (source_.opcode != "cvt" || source_.modifiers.size() != 2 || source_.operands.size() != 2) {
      return false;
    }
    const std::string& to = source_.modifiers[0];
    const std::string& from = source_.modifiers[1];
    const bool integers = (to[0] == 'u' || to[0] == 's') && (from[0] == 'u' || from[0] == 's');
    return integers && is_register(source_.operands[0]) && is_register(source_.operands[1]) &&
           ((to.substr(1) == "32" && from.substr(1) == "64") ||
            (to.substr(1) == "16" && from.substr(1) == "32")) &&
           bits(source_.operands[1]) == 2 * bits(source_.operands[0]);
  }
  // shr.u64 by 32 moves the upper half down and fills the upper half with zeros.
  bool takes_upper() const {
    return source_.opcode == "shr" && (source_.has("u64") || source_.has("b64")) &&
           is_register(source_.operands[0]) && is_register(source_.operands[1]) &&
           source_.operands[2].kind == ptx::OperandKind::kImmediate &&
           source_.operands[2].bits == 32;
  }
  const ptx::Operand& whole() const { return source_.operands[packs() ? 0 : 1]; }
  int bits(const ptx::Operand& operand) const {
    return function_.registers[static_cast<std::size_t>(operand.reg)].bits;
  }
  std::uint32_t number(const ptx::Operand& operand) const {
    return first_ + static_cast<std::uint32_t>(operand.reg);
  }

  const ptx::Function& function_;
  const ptx::Instruction& source_;
  const std::uint32_t first_;
};

}  // namespace

// Finds the registers that may be read before they are written. Registers that are not assigned on
// every path are watched at run time in checked mode, for each lane and part. Other registers cost
// nothing. A move does not count as a read; instead the moved value is watched at its destination.
void Decoder::watch_registers() {
  const std::size_t count = program_->code.size();
  program_->reads.resize(count);
  program_->writes.resize(count);
  program_->moves.resize(count);
  std::vector<MovesOf> sources;
  for (std::size_t pc = 0; pc < count; ++pc) {
    const ptx::Function& function = *program_->functions[pc];
    sources.emplace_back(function, *program_->instructions[pc],
                         frames_.at(function.name).first_register);
  }
  Parts parts(register_count_);
  for (const MovesOf& source : sources) source.split(parts);
  parts.number();
  std::vector<Moves> moves;
  for (const MovesOf& source : sources) moves.push_back(source.take(parts));
  Assigned assigned(program_->code, moves, parts.count());
  assigned.enter(0);
  // Every function starts with nothing assigned, because it reads and writes only its own
  // registers.
  for (const ptx::Function* function : order_) assigned.enter(frames_.at(function->name).start);
  assigned.run(writes_, parts);
  std::vector<std::uint32_t> watched(parts.count(), kNoSlot);
  std::vector<std::uint32_t> fresh;  // watched parts whose sources may not be watched yet
  const auto watch = [&](std::uint32_t part) {
    if (watched[part] != kNoSlot) return;
    watched[part] = program_->watched++;
    fresh.push_back(part);
  };
  const std::vector<bool> dropped = dropped_results();
  const auto read_by = [&](std::size_t pc) {
    if (dropped[pc]) return std::vector<std::uint32_t>();
    if (moves[pc].empty()) return reads_[pc];
    const ptx::Instruction& source = *program_->instructions[pc];
    const std::uint32_t first = frames_.at(program_->functions[pc]->name).first_register;
    std::vector<std::uint32_t> registers;
    if (source.guard >= 0) registers.push_back(first + static_cast<std::uint32_t>(source.guard));
    if (sources[pc].selects() && is_register(source.operands[3])) {
      registers.push_back(first + static_cast<std::uint32_t>(source.operands[3].reg));
    }
    return registers;
  };
  for (std::size_t pc = 0; pc < count; ++pc) {
    if (assigned.before(pc).empty()) continue;
    for (std::uint32_t reg : read_by(pc)) {
      parts.each(reg, [&](std::uint32_t part) {
        if (!contains(assigned.before(pc), part)) watch(part);
      });
    }
  }
  if (program_->watched == 0) return;
  // The source of a move to a watched part has to be watched too.
  std::vector<std::vector<std::uint32_t>> sources_of(parts.count());
  for (const Moves& of_one : moves) {
    for (const PartMove& one : of_one) {
      for (const std::uint32_t from : {one.from, one.also}) {
        if (from != kNoSlot) sources_of[one.to].push_back(from);
      }
    }
  }
  while (!fresh.empty()) {
    const std::uint32_t part = fresh.back();
    fresh.pop_back();
    for (const std::uint32_t from : sources_of[part]) watch(from);
  }
  const auto watched_of = [&](std::uint32_t part) {
    return part == kNoSlot ? kNoSlot : watched[part];
  };
  for (std::size_t pc = 0; pc < count; ++pc) {
    if (!moves[pc].empty()) {
      for (const PartMove& one : moves[pc]) {
        if (watched[one.to] == kNoSlot) continue;
        program_->moves[pc].push_back(
            {watched[one.to], watched_of(one.from), watched_of(one.also), one.selects});
      }
    }
    for (const std::uint32_t reg : read_by(pc)) {
      parts.each(reg, [&](std::uint32_t part) {
        if (watched[part] == kNoSlot) return;
        program_->reads[pc].push_back({watched[part], reg, passes_on(pc, reg)});
      });
    }
    if (moves[pc].empty()) {
      for (std::uint32_t reg : writes_[pc]) {
        parts.each(reg, [&](std::uint32_t part) {
          if (watched[part] != kNoSlot) program_->writes[pc].push_back(watched[part]);
        });
      }
    }
    const bool any = !program_->reads[pc].empty() || !program_->writes[pc].empty() ||
                     !program_->moves[pc].empty();
    if (any) program_->code[pc].watch |= kWatchWritten;
  }
}

// For each instruction: whether it only computes, and its result is read only by instructions of
// the same kind. Their order of execution makes no difference, so the reads on all paths are taken
// together.
std::vector<bool> Decoder::dropped_results() const {
  std::vector<bool> dropped(program_->code.size());
  for (std::size_t pc = 0; pc < dropped.size(); ++pc) {
    const Class kind = program_->code[pc].kind;
    const ptx::Instruction& source = *program_->instructions[pc];
    const bool computes = kind == Class::kInteger || kind == Class::kFloat32 ||
                          kind == Class::kConversion || kind == Class::kSpecial ||
                          source.opcode == "mov";
    // The carry is not a register.
    dropped[pc] = computes && !writes_[pc].empty() && !source.has("cc");
  }
  std::vector<bool> used(register_count_);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t pc = 0; pc < dropped.size(); ++pc) {
      const auto is_used = [&](std::uint32_t reg) { return used[reg]; };
      if (dropped[pc] && std::ranges::none_of(writes_[pc], is_used)) continue;
      dropped[pc] = false;
      for (const std::uint32_t reg : reads_[pc]) {
        changed |= !used[reg];
        used[reg] = true;
      }
    }
  }
  return dropped;
}

// Whether the instruction only passes the register's value on, into shared memory or to another
// lane.
bool Decoder::passes_on(std::size_t pc, std::uint32_t reg) const {
  const ptx::Instruction& instruction = *program_->instructions[pc];
  const bool stores = instruction.opcode == "st" && program_->code[pc].kind == Class::kSharedStore;
  const bool shuffles = instruction.opcode == "shfl";
  if (!stores && !shuffles) return false;
  const auto own =
      static_cast<std::int32_t>(reg - frames_.at(program_->functions[pc]->name).first_register);
  // For both instructions, operand 1 is the value. Operand 0 is the address of a store, or the
  // destination of a shuffle.
  const auto uses = [&](std::size_t i) { return instruction.operands[i].reg == own; };
  bool other = instruction.guard == own || (stores && uses(0));
  for (std::size_t i = 2; i < instruction.operands.size(); ++i) other |= uses(i);
  return !other;
}

// Records for every instruction except wgmma which registers of wgmma it accesses.
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
