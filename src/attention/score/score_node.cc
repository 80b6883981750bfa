// Makes the nodes of score expressions, and checks their types and limits.
#include "attention/score/score_node.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/fail.h"

namespace annulus::attention {
namespace {

using Type = ScoreNode::Type;
using Op = ScoreOperation;

constexpr std::int64_t kMaxEntries = std::int64_t{1} << 28;

constexpr ScoreOperationInfo kOperations[] = {
    {Op::kScore, "score", kAtom, 0},
    {Op::kBatch, "b", kAtom, 0},
    {Op::kHead, "h", kAtom, 0},
    {Op::kQuery, "q", kAtom, 0},
    {Op::kKey, "k", kAtom, 0},
    {Op::kNegate, "-", kPrefix, 1},
    {Op::kNot, "~", kPrefix, 1},
    {Op::kMultiply, "*", kProduct, 2},
    {Op::kDivide, "/", kProduct, 2},
    {Op::kAdd, "+", kSum, 2},
    {Op::kSubtract, "-", kSum, 2},
    // A sign comes after the longer signs that begin with it, because the parser takes the first
    // match.
    {Op::kLessEqual, "<=", kComparison, 2},
    {Op::kLess, "<", kComparison, 2},
    {Op::kGreaterEqual, ">=", kComparison, 2},
    {Op::kGreater, ">", kComparison, 2},
    {Op::kEqual, "==", kComparison, 2},
    {Op::kNotEqual, "!=", kComparison, 2},
    {Op::kAnd, "&", kAnds, 2},
    {Op::kOr, "|", kOrs, 2},
    {Op::kFloorDivide, "div", kAtom, 2},
    {Op::kModulo, "mod", kAtom, 2},
    {Op::kMin, "min", kAtom, 2},
    {Op::kMax, "max", kAtom, 2},
    {Op::kAbs, "abs", kAtom, 1},
    {Op::kFloor, "floor", kAtom, 1},
    {Op::kSqrt, "sqrt", kAtom, 1},
    {Op::kExp, "exp", kAtom, 1},
    {Op::kExp2, "exp2", kAtom, 1},
    {Op::kLog, "log", kAtom, 1},
    {Op::kLog2, "log2", kAtom, 1},
    {Op::kTanh, "tanh", kAtom, 1},
    {Op::kSigmoid, "sigmoid", kAtom, 1},
    {Op::kWhere, "where", kAtom, 3},
};

const char* name_of(Type type) {
  switch (type) {
    case Type::kInteger:
      return "an integer";
    case Type::kReal:
      return "a real number";
    case Type::kTruth:
      return "a comparison";
  }
  return "";
}

[[noreturn]] void refuse(std::string_view sign, const char* wants, const ScoreNode& operand) {
  base::fail(ErrorCode::kInvalidArgument, "{} takes {}, but is given {}", sign, wants,
             name_of(operand.type));
}

// The type of an operation's result. Throws if an operand has a type that the operation does not
// take. Operations on numbers give an integer if all operands are integers. The functions and the
// division of the default case give real numbers, and comparisons give a truth value.
Type type_of(const ScoreOperationInfo& info, const std::vector<ScoreNodePointer>& children) {
  const auto all = [&](Type type) {
    return std::ranges::all_of(children, [&](const auto& child) { return child->type == type; });
  };
  const auto want = [&](const char* wants, bool (*takes)(Type)) {
    for (const ScoreNodePointer& child : children) {
      if (!takes(child->type)) refuse(info.sign, wants, *child);
    }
  };
  const auto want_numbers = [&] {
    want("numbers", [](Type type) { return type != Type::kTruth; });
  };
  switch (info.operation) {
    case Op::kBatch:
    case Op::kHead:
    case Op::kQuery:
    case Op::kKey:
      return Type::kInteger;
    case Op::kAnd:
    case Op::kOr:
    case Op::kNot:
      want("comparisons", [](Type type) { return type == Type::kTruth; });
      return Type::kTruth;
    case Op::kWhere:
      if (children[0]->type != Type::kTruth) {
        refuse(info.sign, "a comparison as its first operand", *children[0]);
      }
      for (std::size_t i = 1; i < 3; ++i) {
        if (children[i]->type == Type::kTruth) {
          refuse(info.sign, "numbers as its second and third operand", *children[i]);
        }
      }
      return children[1]->type == Type::kInteger && children[2]->type == Type::kInteger
                 ? Type::kInteger
                 : Type::kReal;
    case Op::kFloorDivide:
    case Op::kModulo:
      want("integers", [](Type type) { return type == Type::kInteger; });
      return Type::kInteger;
    case Op::kNegate:
    case Op::kAdd:
    case Op::kSubtract:
    case Op::kMultiply:
    case Op::kMin:
    case Op::kMax:
    case Op::kAbs:
      want_numbers();
      return all(Type::kInteger) ? Type::kInteger : Type::kReal;
    default:
      want_numbers();
      return info.strength == kComparison ? Type::kTruth : Type::kReal;
  }
}

ScoreNodePointer finished(ScoreNode node) {
  for (const ScoreNodePointer& child : node.children) {
    node.depth = std::max(node.depth, child->depth + 1);
    // This cannot overflow: each child has at most kMaxScoreNodes nodes, and a node has few
    // children.
    node.nodes += child->nodes;
  }
  if (node.depth > kMaxScoreDepth) {
    base::fail(ErrorCode::kInvalidArgument, "the expression nests {} levels deep, at most {}",
               node.depth, kMaxScoreDepth);
  }
  if (node.nodes > kMaxScoreNodes) {
    base::fail(ErrorCode::kInvalidArgument,
               "the expression has {} operations and operands, at most {}", node.nodes,
               kMaxScoreNodes);
  }
  return std::make_shared<const ScoreNode>(std::move(node));
}

void check_real(double value) {
  if (std::isnan(value)) {
    base::fail(ErrorCode::kInvalidArgument, "an expression has the constant NaN; give a number");
  }
  if (std::isfinite(value) && std::abs(value) > std::numeric_limits<float>::max()) {
    base::fail(ErrorCode::kInvalidArgument, "{} is beyond what fp32 can hold", value);
  }
}

}  // namespace

std::span<const ScoreOperationInfo> score_operations() { return kOperations; }

const ScoreOperationInfo& info_of(ScoreOperation operation) {
  return *std::ranges::find(kOperations, operation, &ScoreOperationInfo::operation);
}

ScoreNodePointer make_score_node(ScoreOperation operation, std::vector<ScoreNodePointer> children) {
  ScoreNode node{.operation = operation};
  node.type = operation == Op::kScore ? Type::kReal : type_of(info_of(operation), children);
  node.children = std::move(children);
  return finished(std::move(node));
}

ScoreNodePointer make_score_integer(std::int64_t value) {
  if (value < std::numeric_limits<std::int32_t>::min() ||
      value > std::numeric_limits<std::int32_t>::max()) {
    base::fail(ErrorCode::kInvalidArgument,
               "{} does not fit in 32 bits; write {}.0 for the real number", value, value);
  }
  return finished({.operation = Op::kInteger,
                   .type = Type::kInteger,
                   .integer = static_cast<std::int32_t>(value)});
}

ScoreNodePointer make_score_real(double value) {
  check_real(value);
  return finished({.operation = Op::kReal, .real = value});
}

std::shared_ptr<const detail::ScoreTableData> make_score_table(detail::ScoreTableData table) {
  const auto count =
      static_cast<std::int64_t>(table.whole ? table.integers.size() : table.reals.size());
  if (count == 0) {
    base::fail(ErrorCode::kInvalidArgument, "a table without values; give at least one");
  }
  if (count > kMaxEntries) {
    base::fail(ErrorCode::kInvalidArgument, "a table of {} values; at most 2^28 are read", count);
  }
  table.two_indices = table.columns != 0;
  if (!table.two_indices) table.columns = count;
  if (table.columns < 0 || count % table.columns != 0) {
    base::fail(ErrorCode::kInvalidArgument,
               "a table of {} values in rows of {}; give whole rows, or 0 columns for one index",
               count, table.columns);
  }
  table.rows = count / table.columns;
  for (const double value : table.reals) check_real(value);
  return std::make_shared<const detail::ScoreTableData>(std::move(table));
}

ScoreNodePointer make_score_lookup(std::shared_ptr<const detail::ScoreTableData> table,
                                   std::vector<ScoreNodePointer> indices) {
  if (indices.size() != (table->two_indices ? 2u : 1u)) {
    base::fail(ErrorCode::kInvalidArgument, "{} given to a table {}",
               indices.size() == 1 ? "one index is" : "two indices are",
               table->two_indices ? "of rows; it takes two" : "without rows; it takes one");
  }
  for (const ScoreNodePointer& index : indices) {
    if (index->type != Type::kInteger) refuse("the index of a table", "integers", *index);
  }
  ScoreNode node{.operation = Op::kTable,
                 .type = table->whole ? Type::kInteger : Type::kReal,
                 .table = std::move(table)};
  node.children = std::move(indices);
  return finished(std::move(node));
}

bool equal(const ScoreNode& a, const ScoreNode& b) {
  if (&a == &b) return true;
  if (a.operation != b.operation || a.integer != b.integer || a.real != b.real ||
      a.children.size() != b.children.size() || a.nodes != b.nodes) {
    return false;
  }
  if (a.table != b.table && !(a.table != nullptr && b.table != nullptr && *a.table == *b.table)) {
    return false;
  }
  return std::ranges::equal(a.children, b.children,
                            [](const auto& x, const auto& y) { return equal(*x, *y); });
}

}  // namespace annulus::attention
