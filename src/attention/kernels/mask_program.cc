#include "attention/kernels/mask_program.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "params/mask_program_params.h"
#include "pattern/leaves/mask_writer.h"
#include "pattern/mask_parts.h"

namespace annulus::attention {
namespace {

namespace leaves = pattern::leaves;
using kernels::MaskOp;
using leaves::MaskNumber;
using pattern::Kind;
using pattern::MaskCode;
using pattern::MaskScope;
using pattern::Node;
using pattern::NodePointer;

struct NamedOp {
  std::string_view name;
  MaskOp op;
};
constexpr NamedOp kLeafOps[] = {
#define ANNULUS_COMPARED_LEAF(name, slots) {#name, MaskOp::name},
#define ANNULUS_SEARCHED_LEAF(name, slots) {#name, MaskOp::name},
#include "params/mask_leaves_params.h"
#undef ANNULUS_COMPARED_LEAF
#undef ANNULUS_SEARCHED_LEAF
};

MaskOp op_of(std::string_view function) {
  const auto* found = std::ranges::find(kLeafOps, function, &NamedOp::name);
  if (found == std::end(kLeafOps)) {
    base::fail(ErrorCode::kInternal, "params/mask_leaves_params.h lacks the function '{}'",
               function);
  }
  return found->op;
}

// The instructions of a part of an expression. Together they push one result on the stack.
struct Instructions {
  std::vector<MaskNumber> words;
  std::vector<std::size_t> targets;  // the words that are indices of instructions of this part
  int depth = 1;                     // results on the stack at a time
  bool uses_blocks = false;
  std::optional<bool> constant = {};
};

void append(Instructions* part, MaskOp op) {
  part->words.push_back({static_cast<std::int32_t>(op)});
}

void append(Instructions* part, const Instructions& other) {
  const auto moved = static_cast<std::int32_t>(part->words.size());
  for (const std::size_t at : other.targets) part->targets.push_back(part->words.size() + at);
  const std::size_t first = part->words.size();
  part->words.insert(part->words.end(), other.words.begin(), other.words.end());
  for (const std::size_t at : other.targets) part->words[first + at].value += moved;
  part->uses_blocks = part->uses_blocks || other.uses_blocks;
}

Instructions fixed(bool value) {
  Instructions part;
  append(&part, value ? MaskOp::kTrue : MaskOp::kFalse);
  part.constant = value;
  return part;
}

class ProgramEmitter {
 public:
  ProgramEmitter(std::size_t number_slots, const MaskScope& scope) : write_(number_slots, scope) {}

  std::optional<MaskCode> run(const Pattern& pattern) {
    Instructions part = part_of(pattern.node());
    if (part.depth > kernels::kMaskDepth) return std::nullopt;
    append(&part, MaskOp::kEnd);
    write_.program(part.words, part.uses_blocks);
    return write_.finish(kProgramText);
  }

  Instructions leaf(const Node& node) {
    leaves::MaskPart written = write_.part([&] {
      return std::visit([&](const auto& leaf) { return leaf.code(&write_); }, node.leaf);
    });
    if (written.piece.constant) return fixed(*written.piece.constant);
    Instructions part;
    append(&part, op_of(written.piece.function));
    part.uses_blocks = written.piece.function == leaves::functions::blocks.name;
    for (const std::size_t slot : written.piece.slots) part.words.push_back(written.numbers[slot]);
    return part;
  }

  Instructions complement(const Node& child) {
    Instructions part = part_of(child);
    if (part.constant) return fixed(!*part.constant);
    append(&part, MaskOp::kNot);
    return part;
  }

  // The instructions of a chain of operands. Operands that cannot change the result are left out.
  // The operand that needs the most stack comes first, when the stack is empty.
  Instructions chain(const Node& node) {
    const bool is_and = !pattern::is_union(node.kind);
    std::vector<Instructions> parts;
    for (const NodePointer& child : node.children) {
      Instructions part = part_of(*child);
      if (part.constant && *part.constant != is_and) return fixed(!is_and);
      if (!part.constant) parts.push_back(std::move(part));
    }
    if (parts.empty()) return fixed(is_and);
    std::ranges::stable_sort(parts, std::ranges::greater(), &Instructions::depth);
    Instructions all = std::move(parts.front());
    for (std::size_t i = 1; i < parts.size(); ++i) {
      append(&all, parts[i]);
      append(&all, is_and ? MaskOp::kAnd : MaskOp::kOr);
      all.depth = std::max(all.depth, 1 + parts[i].depth);
    }
    return all;
  }

  // The instructions of patterns by turns: the table of begins, then each child, with a jump after
  // every child but the last.
  Instructions turns(const Node& node) {
    std::vector<Instructions> parts;
    for (const NodePointer& child : node.children) parts.push_back(part_of(*child));
    const std::optional<bool> first = parts.front().constant;
    if (first &&
        std::ranges::all_of(parts, [&](const Instructions& p) { return p.constant == first; })) {
      return fixed(*first);
    }
    Instructions all;
    append(&all, node.kind == Kind::kHeads ? MaskOp::kTurn : MaskOp::kBatchTurn);
    if (node.kind == Kind::kHeads) {
      all.words.push_back({checked("n of head_groups", node.group)});
    }
    const std::size_t count = parts.size();
    all.words.push_back({checked("the patterns of heads or batches", std::ssize(parts))});
    const std::size_t begins = all.words.size();
    all.words.resize(begins + count);
    std::vector<std::size_t> ends;
    for (std::size_t i = 0; i < count; ++i) {
      point(&all, begins + i);
      append(&all, parts[i]);
      append(&all, MaskOp::kJump);
      ends.push_back(all.words.size());
      all.words.emplace_back();
      all.depth = std::max(all.depth, parts[i].depth);
    }
    for (const std::size_t end : ends) point(&all, end);
    return all;
  }

 private:
  Instructions part_of(const Node& node) { return pattern::write_part(*this, node); }

  // Sets a word to the index of the instruction that will follow.
  static void point(Instructions* part, std::size_t word) {
    part->words[word] = {static_cast<std::int32_t>(part->words.size())};
    part->targets.push_back(word);
  }

  static std::int32_t checked(const char* what, std::int64_t value) {
    return leaves::device_number(what, value);
  }

  leaves::MaskWriter write_;
};

}  // namespace

std::optional<MaskCode> emit_program(const Pattern& pattern, std::size_t number_slots,
                                     const MaskScope& scope) {
  return ProgramEmitter(number_slots, scope).run(pattern);
}

}  // namespace annulus::attention
