#include "attention/score/score_code.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "attention/score/score_node.h"
#include "base/fail.h"
#include "params/attention_params.h"

namespace annulus::attention {
namespace {

using Op = ScoreOperation;
using Type = ScoreNode::Type;

// The instructions of an operation, and the special functions among them, in the code that NVRTC
// makes.
struct Cost {
  double instructions;
  double special;
};

Cost cost_of(const ScoreNode& node) {
  switch (node.operation) {
    case Op::kScore:
    case Op::kBatch:
    case Op::kHead:
    case Op::kQuery:
    case Op::kKey:
    case Op::kInteger:
    case Op::kReal:
      return {0, 0};
    case Op::kTable:
      return {node.table->two_indices ? 9.0 : 5.0, 0};
    case Op::kDivide:
    case Op::kSqrt:
    case Op::kExp2:
    case Op::kLog2:
      return {2, 1};
    case Op::kExp:
    case Op::kLog:
      return {3, 1};
    case Op::kSigmoid:
      return {5, 2};
    case Op::kTanh:
      return {16, 2};
    case Op::kFloorDivide:
    case Op::kModulo:
      return {40, 2};  // a division of integers by a variable
    default:
      return {1, 0};
  }
}

// Expressions of at most this many instructions are written out for each element of a tile.
constexpr double kMaxWrittenOut = 20;
// Expressions of more instructions than this are evaluated for one piece of a tile at a time.
constexpr double kMaxOfPieces = 60;
// The most words of all tables together: 1 GB.
constexpr std::size_t kMaxWords = std::size_t{1} << 28;

// Writes the text of an expression, and gives every number and table a slot, in the order in which
// they occur.
class Emitter {
 public:
  explicit Emitter(bool with_tables) : with_tables_(with_tables) {}

  ScoreCode run(const ScoreNode& node) {
    code_.structure.text = text_of(node, kOrs);
    constexpr std::size_t kRoom = kernels::kScoreNumbers;
    // The first kRoom numbers are parameters of the kernel. The others are stored at the start of
    // the array `words`, and the tables after them. The place of a number depends on the structure
    // of the expression alone, so expressions of one structure share a kernel. The index at which a
    // table begins is passed as one of the numbers.
    const std::size_t spilled = numbers_.size() - std::min(numbers_.size(), kRoom);
    if (tables_.size() > kMaxWords - spilled) {
      base::fail(ErrorCode::kUnsupported,
                 "the tables of the score expression have {} values, more than 2^28 in all",
                 tables_.size());
    }
    for (const std::size_t slot : offsets_) numbers_[slot] += static_cast<std::int32_t>(spilled);
    const auto room = numbers_.begin() + static_cast<std::ptrdiff_t>(numbers_.size() - spilled);
    code_.numbers.assign(numbers_.begin(), room);
    code_.words.assign(room, numbers_.end());
    code_.words.insert(code_.words.end(), tables_.begin(), tables_.end());
    code_.structure.costly = searches_ || code_.structure.instructions > kMaxWrittenOut;
    code_.structure.is_long = code_.structure.instructions > kMaxOfPieces;
    return std::move(code_);
  }

 private:
  std::size_t slot(std::int32_t number) {
    numbers_.push_back(number);
    return numbers_.size() - 1;
  }

  static std::int32_t bits_of(double value) {
    return std::bit_cast<std::int32_t>(static_cast<float>(value));
  }

  // The text of a node, in parentheses if it binds less tightly than `needed`. It also adds up the
  // costs and records whether positions are read. Slots are taken in the order of the text, so that
  // expressions of the same structure have the same text.
  std::string text_of(const ScoreNode& node, int needed) {
    const Cost cost = cost_of(node);
    code_.structure.instructions += cost.instructions;
    code_.structure.special += cost.special;
    ++code_.structure.operations;
    switch (node.operation) {
      case Op::kInteger:
        return fmt::format("m.integer({})", slot(node.integer));
      case Op::kReal:
        return fmt::format("m.real({})", slot(bits_of(node.real)));
      case Op::kTable:
        return lookup(node);
      case Op::kQuery:
      case Op::kKey:
        code_.structure.positions = true;
        break;
      default:
        break;
    }
    const ScoreOperationInfo& info = info_of(node.operation);
    std::string text;
    if (info.strength == kAtom) {
      text = info.sign;
      for (std::size_t i = 0; i < node.children.size(); ++i) {
        text += i == 0 ? "(" : ", ";
        text += text_of(*node.children[i], kOrs);
      }
      if (!node.children.empty()) text += ")";
    } else if (info.strength == kPrefix) {
      text = info.sign;
      text += text_of(*node.children[0], kAtom);
    } else {
      text = text_of(*node.children[0], info.strength == kComparison ? kSum : info.strength);
      text += fmt::format(" {} ", info.sign);
      text += text_of(*node.children[1], info.strength + 1);
    }
    return info.strength < needed ? "(" + text + ")" : text;
  }

  // A look-up has two or three slots: the beginning of the table, its rows if there are two
  // indices, and its columns.
  std::string lookup(const ScoreNode& node) {
    searches_ = true;
    const detail::ScoreTableData& table = *node.table;
    const std::size_t offset = slot(with_tables_ ? place_of(node.table) : 0);
    offsets_.push_back(offset);
    if (table.two_indices) slot(static_cast<std::int32_t>(table.rows));
    slot(static_cast<std::int32_t>(table.columns));
    std::string text = fmt::format("m.{}({}", table.whole ? "integers" : "reals", offset);
    for (const ScoreNodePointer& index : node.children) text += ", " + text_of(*index, kOrs);
    return text + ")";
  }

  // The index at which a table begins among the tables. A table that several look-ups share is
  // stored once.
  std::int32_t place_of(const std::shared_ptr<const detail::ScoreTableData>& table) {
    for (const auto& [known, place] : places_) {
      if (known == table) return place;
    }
    const std::size_t count = table->integers.size() + table->reals.size();
    const std::size_t place = tables_.size();
    if (place + count > kMaxWords) {
      base::fail(ErrorCode::kUnsupported,
                 "the tables of the score expression have more than 2^28 values in all");
    }
    tables_.insert(tables_.end(), table->integers.begin(), table->integers.end());
    for (const double value : table->reals) tables_.push_back(bits_of(value));
    places_.emplace_back(table, static_cast<std::int32_t>(place));
    return static_cast<std::int32_t>(place);
  }

  const bool with_tables_;
  ScoreCode code_;
  bool searches_ = false;
  std::vector<std::int32_t> numbers_;
  std::vector<std::int32_t> tables_;
  std::vector<std::size_t> offsets_;
  std::vector<std::pair<std::shared_ptr<const detail::ScoreTableData>, std::int32_t>> places_;
};

}  // namespace

ScoreCode score_code(const std::optional<ScoreExpression>& expression) {
  return expression ? Emitter(true).run(expression->node()) : ScoreCode();
}

ScoreStructure score_structure(const std::optional<ScoreExpression>& expression) {
  return expression ? Emitter(false).run(expression->node()).structure : ScoreStructure();
}

}  // namespace annulus::attention
