#include "pattern/mask_code.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "pattern/node.h"
#include "pattern/positions.h"
#include "pattern/random_blocks.h"

namespace annulus::pattern {
namespace {

// Positions and numbers on the device: far enough from 2^31 that differences do not overflow.
constexpr std::int64_t kMostDevice = std::int64_t{1} << 30;
// Entries of the lists: 1 GB, and indices fit 32 bits.
constexpr std::int64_t kMostEntries = std::int64_t{1} << 28;

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
  Emitter(std::size_t number_slots, const MaskScope& scope) : room_(number_slots), scope_(scope) {}

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
    code_.costly =
        code_.uses_blocks || divides_ || !offset_slots_.empty() || calls_ > kMostWrittenOut;
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

  static Piece call(std::string_view name, std::initializer_list<std::size_t> slots) {
    return {
        fmt::format("m.{}({}{}q, k)", name, fmt::join(slots, ", "), slots.size() > 0 ? ", " : ""),
        kTight,
        {}};
  }
  Piece dividing_call(std::string_view name, std::initializer_list<std::size_t> slots) {
    divides_ = true;
    return call(name, slots);
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
        return call("causal", {});
      case Kind::kWindow:
        return window(node);
      case Kind::kSink:
        return call("sink", {slot("n of sink", node.first)});
      case Kind::kGlobalFirst:
        return call("global_first", {slot("n of global", node.first)});
      case Kind::kGlobalListed: {
        const auto [offset, length] = list_slots("a position of global", node.list);
        return call("global_listed", {offset, length});
      }
      case Kind::kDocuments: {
        const auto [offset, length] = list_slots("a start of documents", node.list);
        return call("documents", {offset, length});
      }
      case Kind::kBlocks:
        return blocks(node);
      case Kind::kBand:
        return band(node);
      case Kind::kStrided: {
        const std::size_t s = slot("s of strided", node.first);
        const std::size_t n = slot("n of strided", node.second);
        return dividing_call("strided", {s, n, slot("b of strided", node.third)});
      }
      case Kind::kRandom:
        return random(node);
      case Kind::kSegment: {
        const std::size_t w = slot("w of segment", node.first);
        return dividing_call("segment", {w, slot("r of segment", node.second)});
      }
      case Kind::kAxial: {
        const std::size_t height = slot("height of axial", node.first);
        return dividing_call("axial", {height, slot("width of axial", node.second)});
      }
      case Kind::kNatten: {
        const std::size_t height = slot("height of natten", node.first);
        const std::size_t width = slot("width of natten", node.second);
        return dividing_call("natten", {height, width, slot("n of natten", node.third / 2)});
      }
      case Kind::kVerticalSlash: {
        const auto [columns, column_count] = list_slots("a column of vertical_slash", node.list);
        const auto [slashes, slash_count] = list_slots("a slash of vertical_slash", node.slashes);
        return call("vertical_slash", {columns, column_count, slashes, slash_count});
      }
      case Kind::kNot: {
        Piece inner = piece_of(*node.children.front());
        if (inner.constant) return constant(!*inner.constant);
        return {"!" + held(inner, kTight), kTight, {}};
      }
      case Kind::kAnd:
      case Kind::kOr:
      case Kind::kHierarchical:
        return chain(node);
      case Kind::kHeads:
        return heads(node);
      case Kind::kSum:
        base::fail(ErrorCode::kUnsupported,
                   "sum(...) is no one mask: its branches run one after another");
    }
    base::fail(ErrorCode::kInternal, "a pattern node of kind {}", static_cast<int>(node.kind));
  }

  Piece window(const Node& node) {
    if (node.first == -1 && node.second == -1) return constant(true);
    if (node.second == -1) return call("window_left", {slot("left of window", node.first)});
    if (node.first == -1) return call("window_right", {slot("right of window", node.second)});
    const std::size_t left = slot("left of window", node.first);
    return call("window", {left, slot("right of window", node.second)});
  }

  Piece band(const Node& node) {
    const std::size_t stride = slot("a stride", node.first);
    if (node.second == -1 && node.third == 1) return dividing_call("dilated", {stride});
    if (node.second == -1) return dividing_call("band", {stride, slot("a block", node.third)});
    const std::size_t window = slot("a window of hierarchical", node.second);
    return dividing_call("level", {stride, window, slot("a block", node.third)});
  }

  // A list of what each head chooses in each row of blocks.
  Piece random(const Node& node) {
    const std::int64_t columns = random_columns(node, scope_.context);
    const std::int64_t count = std::min(node.first, columns);
    const std::int64_t first = floor_div(scope_.queries.begin, node.third);
    const std::int64_t rows =
        scope_.queries.empty() ? 0 : floor_div(scope_.queries.end - 1, node.third) - first + 1;
    // Each factor is below 2^31 where a device is concerned; the product of three may not be.
    if (static_cast<double>(scope_.heads) * static_cast<double>(rows) * static_cast<double>(count) >
        static_cast<double>(kMostEntries)) {
      base::fail(ErrorCode::kUnsupported,
                 "random({}, {}, {}) makes {} choices for each of {} heads and {} rows of blocks, "
                 "more than 2^28 in all; use larger blocks",
                 node.first, node.second, node.third, count, scope_.heads, rows);
    }
    std::vector<std::int64_t> all, chosen;
    for (std::int64_t head = 0; head < scope_.heads; ++head) {
      for (std::int64_t row = 0; row < rows; ++row) {
        choose_columns(node, head, first + row, columns, scope_.context, &chosen);
        all.insert(all.end(), chosen.begin(), chosen.end());
      }
    }
    const std::size_t offset = list_slots("a choice of random", all).first;
    const std::size_t c = slot("c of random", count);
    const std::size_t b = slot("b of random", node.third);
    const std::size_t begin = slot("the first row of random", first);
    return dividing_call("random", {offset, c, b, begin, slot("the rows of random", rows)});
  }

  // The head is the same for all threads of a CTA.
  Piece heads(const Node& node) {
    std::vector<Piece> pieces;
    for (const NodePointer& child : node.children) pieces.push_back(piece_of(*child));
    if (std::all_of(pieces.begin(), pieces.end(), [&](const Piece& piece) {
          return piece.constant && piece.constant == pieces.front().constant;
        })) {
      return pieces.front();
    }
    std::string text = "(";
    for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
      text += fmt::format("m.turn({}) == {} ? {} : ", pieces.size(), i, held(pieces[i], kTight));
    }
    return {text + held(pieces.back(), kTight) + ")", kTight, {}};
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
    const bool is_and = !is_union(node.kind);
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
  const MaskScope& scope_;
  MaskCode code_;
  int calls_ = 0;
  bool divides_ = false;
  std::vector<std::int64_t> numbers_;
  std::vector<std::int32_t> lists_;
  std::vector<std::size_t> offset_slots_;
};

}  // namespace

MaskCode emit(const Pattern& pattern, std::size_t number_slots, const MaskScope& scope) {
  return Emitter(number_slots, scope).run(pattern);
}

}  // namespace annulus::pattern
