#include "pattern/mask_code.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "base/fail.h"
#include "pattern/leaves/mask_writer.h"
#include "pattern/mask_parts.h"
#include "pattern/node.h"

namespace annulus::pattern {
namespace {

using leaves::constant;
using leaves::MaskPart;
using leaves::Piece;
using leaves::Strength;

// Up to this number of children of heads() and batches(), or of operands of a chain, each has a
// text of its own, even if all differ only in their numbers. More of them share one text, because
// NVRTC takes longer for each text, but a kernel takes only a little longer to read a number from a
// list.
constexpr std::size_t kFewTurns = 8;
constexpr std::size_t kFewAlike = 8;

std::string held(const Piece& piece, Strength needed) {
  return piece.strength < needed ? "(" + piece.text + ")" : piece.text;
}

class Emitter {
 public:
  Emitter(std::size_t number_slots, const MaskScope& scope) : write_(number_slots, scope) {}

  MaskCode run(const Pattern& pattern) { return write_.finish(piece_of(pattern.node()).text); }

  Piece leaf(const Node& node) {
    return std::visit([&](const auto& leaf) { return leaf.code(&write_); }, node.leaf);
  }

  Piece complement(const Node& child) {
    Piece inner = piece_of(child);
    if (inner.constant) return constant(!*inner.constant);
    return {"!" + held(inner, leaves::kTight)};
  }

  // The text chooses with ?: among the children. If all children differ only in their numbers, it
  // chooses a row of numbers. The choice does not diverge, since all threads of a CTA have the same
  // head and the same batch.
  Piece turns(const Node& node) {
    std::vector<MaskPart> parts = parts_of(node);
    const MaskPart& front = parts.front();
    const auto all = [&](const auto& holds) { return std::ranges::all_of(parts, holds); };
    if (all([&](const MaskPart& part) {
          return part.piece.constant && part.piece.constant == front.piece.constant;
        })) {
      return front.piece;
    }
    const auto turn = [&] {
      const std::size_t count = node.children.size();
      if (node.kind == Kind::kBatches) return fmt::format("m.batch_turn({})", count);
      if (node.group == 1) return fmt::format("m.turn({})", count);
      return fmt::format("m.group(#{}, {})", write_.slot("n of head_groups", node.group), count);
    };
    if (parts.size() > kFewTurns &&
        all([&](const MaskPart& part) { return part.piece.text == front.piece.text; })) {
      if (front.numbers.empty()) return front.piece;
      std::vector<std::size_t> which(parts.size());
      std::iota(which.begin(), which.end(), std::size_t{0});
      return shared("one_of", parts, which, turn());
    }
    std::vector<Piece> pieces;
    for (MaskPart& part : parts) pieces.push_back(write_.place(std::move(part)));
    const std::string chosen = turn();
    std::string text = "(";
    for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
      text += fmt::format("{} == {} ? {} : ", chosen, i, held(pieces[i], leaves::kTight));
    }
    return {text + held(pieces.back(), leaves::kTight) + ")"};
  }

  // The text uses & and | of bools, which have no branches. Operands that cannot change the result
  // (true in an &, false in an |) are left out. If many operands differ only in their numbers, the
  // text has one of them, in a loop over their numbers.
  Piece chain(const Node& node) {
    const bool is_and = !is_union(node.kind);
    const Strength strength = is_and ? leaves::kWeakAnd : leaves::kWeakOr;
    std::vector<MaskPart> parts = parts_of(node);
    bool decided = false;
    std::map<std::string, std::vector<std::size_t>> alike;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::optional<bool> constant = parts[i].piece.constant;
      if (!constant) {
        alike[parts[i].piece.text].push_back(i);
      } else if (*constant != is_and) {
        decided = true;  // false & x, or true | x
      }
    }
    if (decided || alike.empty()) return constant(decided ? !is_and : is_and);
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].piece.constant) continue;
      const std::vector<std::size_t>& others = alike[parts[i].piece.text];
      if (others.size() <= kFewAlike || (parts[i].numbers.empty() && others.front() == i)) {
        pieces.push_back(write_.place(parts[i]));
      } else if (others.front() == i && !parts[i].numbers.empty()) {
        const std::size_t count = write_.slot("how many are alike", std::ssize(others));
        pieces.push_back(
            shared(is_and ? "all_of" : "any_of", parts, others, fmt::format("#{}", count)));
      }
    }
    if (pieces.size() == 1) return std::move(pieces.front());
    Piece result{held(pieces.front(), strength), strength, {}};
    for (std::size_t i = 1; i < pieces.size(); ++i) {
      result.text += (is_and ? " & " : " | ") + held(pieces[i], strength);
    }
    return result;
  }

 private:
  Piece piece_of(const Node& node) { return write_part(*this, node); }

  // The children as separate parts.
  std::vector<MaskPart> parts_of(const Node& node) {
    std::vector<MaskPart> parts;
    for (const NodePointer& child : node.children) {
      parts.push_back(write_.part([&] { return piece_of(*child); }));
    }
    return parts;
  }

  // "m.FUNCTION(#table, width, ROW, [&](const auto& m) { return TEXT; })": one text for parts that
  // differ only in their numbers; the numbers are in the rows of a table.
  Piece shared(const char* function, const std::vector<MaskPart>& parts,
               const std::vector<std::size_t>& which, const std::string& row) {
    const MaskPart& one = parts[which.front()];
    std::string text = one.piece.text;
    std::erase(text, '#');
    const std::size_t table = write_.table(parts, which);
    return {fmt::format("m.{}(#{}, {}, {}, [&](const auto& m) {{ return {}; }})", function, table,
                        one.numbers.size(), row, text)};
  }

  leaves::MaskWriter write_;
};

}  // namespace

MaskCode emit(const Pattern& pattern, std::size_t number_slots, const MaskScope& scope) {
  return Emitter(number_slots, scope).run(pattern);
}

}  // namespace annulus::pattern
