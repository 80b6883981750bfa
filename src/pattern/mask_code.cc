#include "pattern/mask_code.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "pattern/leaves/mask_writer.h"
#include "pattern/node.h"

namespace annulus::pattern {
namespace {

using leaves::constant;
using leaves::Piece;
using leaves::Strength;

std::string held(const Piece& piece, Strength needed) {
  return piece.strength < needed ? "(" + piece.text + ")" : piece.text;
}

class Emitter {
 public:
  Emitter(std::size_t number_slots, const MaskScope& scope) : write_(number_slots, scope) {}

  MaskCode run(const Pattern& pattern) { return write_.finish(piece_of(pattern.node()).text); }

 private:
  Piece piece_of(const Node& node) {
    switch (node.kind) {
      case Kind::kLeaf:
        write_.count_leaf();
        return std::visit([&](const auto& leaf) { return leaf.code(&write_); }, node.leaf);
      case Kind::kNot: {
        Piece inner = piece_of(*node.children.front());
        if (inner.constant) return constant(!*inner.constant);
        return {"!" + held(inner, leaves::kTight)};
      }
      case Kind::kAnd:
      case Kind::kOr:
      case Kind::kHierarchical:
        return chain(node);
      case Kind::kHeads:
      case Kind::kBatches:
        return turns(node);
      case Kind::kSum:
        base::fail(ErrorCode::kUnsupported,
                   "sum(...) is no one mask: its branches run one after another");
    }
    base::fail(ErrorCode::kInternal, "a pattern node of kind {}", static_cast<int>(node.kind));
  }

  // The text chooses by ?: among the children. That does not diverge, since all threads of a CTA
  // have the same head and the same batch.
  Piece turns(const Node& node) {
    std::vector<Piece> pieces;
    for (const NodePointer& child : node.children) pieces.push_back(piece_of(*child));
    if (std::all_of(pieces.begin(), pieces.end(), [&](const Piece& piece) {
          return piece.constant && piece.constant == pieces.front().constant;
        })) {
      return pieces.front();
    }
    const std::string turn =
        node.kind == Kind::kBatches ? fmt::format("m.batch_turn({})", pieces.size())
        : node.group == 1           ? fmt::format("m.turn({})", pieces.size())
                                    : fmt::format("m.group({}, {})",
                                                  write_.slot("n of head_groups", node.group), pieces.size());
    std::string text = "(";
    for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
      text += fmt::format("{} == {} ? {} : ", turn, i, held(pieces[i], leaves::kTight));
    }
    return {text + held(pieces.back(), leaves::kTight) + ")"};
  }

  // & and | of bools, without branches. Operands that decide nothing (true in an &, false in an |)
  // are left out.
  Piece chain(const Node& node) {
    const bool is_and = !is_union(node.kind);
    const Strength strength = is_and ? leaves::kWeakAnd : leaves::kWeakOr;
    std::vector<Piece> pieces;
    bool decided = false;
    for (const NodePointer& child : node.children) {
      Piece piece = piece_of(*child);
      if (!piece.constant) {
        pieces.push_back(std::move(piece));
      } else if (*piece.constant != is_and) {
        decided = true;  // false & x, true | x
      }
    }
    if (decided || pieces.empty()) return constant(decided ? !is_and : is_and);
    if (pieces.size() == 1) return std::move(pieces.front());
    Piece result{held(pieces.front(), strength), strength, {}};
    for (std::size_t i = 1; i < pieces.size(); ++i) {
      result.text += (is_and ? " & " : " | ") + held(pieces[i], strength);
    }
    return result;
  }

  leaves::MaskWriter write_;
};

}  // namespace

MaskCode emit(const Pattern& pattern, std::size_t number_slots, const MaskScope& scope) {
  return Emitter(number_slots, scope).run(pattern);
}

}  // namespace annulus::pattern
