#include "pattern/mask_code.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "pattern/node.h"

namespace annulus::pattern {
namespace {

// Positions and numbers on the device: far enough from 2^31 that differences do not overflow.
constexpr std::int64_t kMostDevice = std::int64_t{1} << 30;

enum Strength { kWeakOr, kWeakAnd, kTight };

// Text, how tightly it holds together, and its value where that is the same for all pairs.
struct Piece {
  std::string text;
  Strength strength = kTight;
  std::optional<bool> constant;
};

Piece constant(bool value) { return {value ? "true" : "false", kTight, value}; }

std::string held(const Piece& piece, Strength needed) {
  return piece.strength < needed ? "(" + piece.text + ")" : piece.text;
}

// Comparisons that are worth writing out for each element of a tile.
constexpr int kMostWrittenOut = 8;

class Emitter {
 public:
  explicit Emitter(std::size_t number_slots) : room_(number_slots) {}

  MaskCode run(const Pattern& pattern) {
    code_.text = piece_of(pattern.node()).text;
    code_.uses_blocks = code_.text.find("m.blocks(") != std::string::npos;
    if (!code_.uses_blocks) code_.layout = nullptr;  // an operand that decides nothing
    // Which slot a number has depends on the structure alone, where a list begins on the values.
    const std::size_t spilled = numbers_.size() - std::min(numbers_.size(), room_);
    for (const std::size_t slot : offset_slots_) {
      numbers_[slot] =
          narrow("a list's offset", numbers_[slot] + static_cast<std::int64_t>(spilled));
    }
    for (std::size_t slot = 0; slot < numbers_.size(); ++slot) {
      (slot < room_ ? code_.numbers : code_.lists)
          .push_back(static_cast<std::int32_t>(numbers_[slot]));
    }
    code_.lists.insert(code_.lists.end(), lists_.begin(), lists_.end());
    code_.costly = code_.uses_blocks || !offset_slots_.empty() || calls_ > kMostWrittenOut;
    return std::move(code_);
  }

 private:
  static std::int32_t narrow(const char* what, std::int64_t value) {
    if (value < -kMostDevice || value > kMostDevice) {
      base::fail(ErrorCode::kUnsupported,
                 "{} is {}; on a device positions and numbers are within +-2^30", what, value);
    }
    return static_cast<std::int32_t>(value);
  }

  std::size_t slot(const char* what, std::int64_t value) {
    numbers_.push_back(narrow(what, value));
    return numbers_.size() - 1;
  }

  // Two slots: where the list begins, and its length.
  std::pair<std::size_t, std::size_t> list_slots(const char* what,
                                                 const std::vector<std::int64_t>& list) {
    const std::size_t offset = slot("a list's offset", static_cast<std::int64_t>(lists_.size()));
    offset_slots_.push_back(offset);
    for (const std::int64_t value : list) lists_.push_back(narrow(what, value));
    return {offset, slot("a list's length", static_cast<std::int64_t>(list.size()))};
  }

  Piece piece_of(const Node& node) {
    if (node.children.empty()) ++calls_;
    switch (node.kind) {
      case Kind::kDense:
        return constant(true);
      case Kind::kCausal:
        return {"m.causal(q, k)", kTight, {}};
      case Kind::kWindow:
        return window(node);
      case Kind::kSink:
        return {fmt::format("m.sink({}, q, k)", slot("n of sink", node.first)), kTight, {}};
      case Kind::kGlobalFirst:
        return {
            fmt::format("m.global_first({}, q, k)", slot("n of global", node.first)), kTight, {}};
      case Kind::kGlobalListed: {
        const auto [offset, length] = list_slots("a position of global", node.list);
        return {fmt::format("m.global_listed({}, {}, q, k)", offset, length), kTight, {}};
      }
      case Kind::kDocuments: {
        const auto [offset, length] = list_slots("a start of documents", node.list);
        return {fmt::format("m.documents({}, {}, q, k)", offset, length), kTight, {}};
      }
      case Kind::kBlocks:
        return blocks(node);
      case Kind::kNot: {
        Piece inner = piece_of(*node.children.front());
        if (inner.constant) return constant(!*inner.constant);
        return {"!" + held(inner, kTight), kTight, {}};
      }
      case Kind::kAnd:
      case Kind::kOr:
        return chain(node);
    }
    base::fail(ErrorCode::kInternal, "a pattern node of kind {}", static_cast<int>(node.kind));
  }

  Piece window(const Node& node) {
    if (node.first == -1 && node.second == -1) return constant(true);
    if (node.second == -1) {
      return {
          fmt::format("m.window_left({}, q, k)", slot("left of window", node.first)), kTight, {}};
    }
    if (node.first == -1) {
      return {fmt::format("m.window_right({}, q, k)", slot("right of window", node.second)),
              kTight,
              {}};
    }
    const std::size_t left = slot("left of window", node.first);
    const std::size_t right = slot("right of window", node.second);
    return {fmt::format("m.window({}, {}, q, k)", left, right), kTight, {}};
  }

  Piece blocks(const Node& node) {
    if (code_.layout != nullptr && code_.layout != node.layout &&
        !(*code_.layout == *node.layout)) {
      base::fail(ErrorCode::kUnsupported,
                 "the expression has two different layouts ({} and another); a kernel reads one: "
                 "combine them beforehand",
                 node.name);
    }
    code_.layout = node.layout;
    return {"m.blocks(q, k)", kTight, {}};
  }

  // & and | of bools without branches; operands that decide nothing are left out.
  Piece chain(const Node& node) {
    const bool is_and = node.kind == Kind::kAnd;
    const Strength strength = is_and ? kWeakAnd : kWeakOr;
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

  std::size_t room_;
  MaskCode code_;
  int calls_ = 0;
  std::vector<std::int64_t> numbers_;
  std::vector<std::int32_t> lists_;
  std::vector<std::size_t> offset_slots_;
};

}  // namespace

MaskCode emit(const Pattern& pattern, std::size_t number_slots) {
  return Emitter(number_slots).run(pattern);
}

}  // namespace annulus::pattern
