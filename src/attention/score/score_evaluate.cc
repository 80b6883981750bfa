// Evaluates a score expression in float64, from its tree.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "attention/score/score_code.h"
#include "attention/score/score_node.h"

namespace annulus::attention {
namespace {

using Op = ScoreOperation;
using Type = ScoreNode::Type;

// A value of the node's type. For a truth value, `integer` is 0 or 1.
struct Value {
  std::int32_t integer = 0;
  double real = 0;
};

std::int32_t wrapped(std::int64_t value) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(value));
}

Value whole(std::int64_t value) { return {wrapped(value), 0}; }
Value real(double value) { return {0, value}; }
Value truth(bool value) { return {value ? 1 : 0, 0}; }

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

bool holds(Op operation, auto a, auto b) {
  switch (operation) {
    case Op::kLess:
      return a < b;
    case Op::kLessEqual:
      return a <= b;
    case Op::kGreater:
      return a > b;
    case Op::kGreaterEqual:
      return a >= b;
    case Op::kEqual:
      return a == b;
    default:
      return a != b;
  }
}

Value of_integers(Op operation, std::int64_t a, std::int64_t b) {
  switch (operation) {
    case Op::kNegate:
      return whole(-a);
    case Op::kAbs:
      return whole(std::abs(a));
    case Op::kAdd:
      return whole(a + b);
    case Op::kSubtract:
      return whole(a - b);
    case Op::kMultiply:
      return whole(a * b);
    case Op::kMin:
      return whole(std::min(a, b));
    case Op::kMax:
      return whole(std::max(a, b));
    case Op::kFloorDivide:
      return whole(b == 0 ? 0 : floor_div(a, b));
    case Op::kModulo:
      return whole(b == 0 ? 0 : a - floor_div(a, b) * b);
    default:
      return truth(holds(operation, a, b));
  }
}

Value of_reals(Op operation, double a, double b) {
  switch (operation) {
    case Op::kNegate:
      return real(-a);
    case Op::kAbs:
      return real(std::abs(a));
    case Op::kAdd:
      return real(a + b);
    case Op::kSubtract:
      return real(a - b);
    case Op::kMultiply:
      return real(a * b);
    case Op::kDivide:
      return real(a / b);
    case Op::kMin:
      return real(std::fmin(a, b));
    case Op::kMax:
      return real(std::fmax(a, b));
    case Op::kFloor:
      return real(std::floor(a));
    case Op::kSqrt:
      return real(std::sqrt(a));
    case Op::kExp:
      return real(std::exp(a));
    case Op::kExp2:
      return real(std::exp2(a));
    case Op::kLog:
      return real(std::log(a));
    case Op::kLog2:
      return real(std::log2(a));
    case Op::kTanh:
      return real(std::tanh(a));
    case Op::kSigmoid:
      return real(1 / (1 + std::exp(-a)));
    default:
      return truth(holds(operation, a, b));
  }
}

// The value of a node. Constants and entries of tables go through float, because the kernel holds
// them in fp32: so the oracle is exact for the numbers that the kernel reads, which may differ from
// the numbers in the text. Indices of tables are clamped, and where() evaluates only the operand
// that it selects.
Value value_of(const ScoreNode& node, const ScorePoint& point) {
  const auto child = [&](std::size_t i) { return value_of(*node.children[i], point); };
  const auto is_integer = [&](std::size_t i) { return node.children[i]->type == Type::kInteger; };
  const auto real_child = [&](std::size_t i) {
    const Value value = child(i);
    return is_integer(i) ? static_cast<double>(value.integer) : value.real;
  };
  switch (node.operation) {
    case Op::kScore:
      return real(point.score);
    case Op::kBatch:
      return whole(point.b);
    case Op::kHead:
      return whole(point.h);
    case Op::kQuery:
      return whole(point.q);
    case Op::kKey:
      return whole(point.k);
    case Op::kInteger:
      return whole(node.integer);
    case Op::kReal:
      return real(static_cast<double>(static_cast<float>(node.real)));
    case Op::kTable: {
      const detail::ScoreTableData& table = *node.table;
      const auto at = [&](std::size_t i, std::int64_t count) {
        return std::clamp<std::int64_t>(child(i).integer, 0, count - 1);
      };
      const auto place = static_cast<std::size_t>(
          table.two_indices ? at(0, table.rows) * table.columns + at(1, table.columns)
                            : at(0, table.columns));
      if (table.whole) return whole(table.integers[place]);
      return real(static_cast<double>(static_cast<float>(table.reals[place])));
    }
    case Op::kNot:
      return truth(child(0).integer == 0);
    case Op::kAnd:
      return truth((child(0).integer & child(1).integer) != 0);
    case Op::kOr:
      return truth((child(0).integer | child(1).integer) != 0);
    case Op::kWhere: {
      const std::size_t taken = child(0).integer != 0 ? 1 : 2;
      return node.type == Type::kInteger ? child(taken) : real(real_child(taken));
    }
    default:
      break;
  }
  // All other operations take one or two numbers. They are computed in integers if all operands are
  // integers and the result is not real; a comparison of integers is such a case.
  const bool two = node.children.size() == 2;
  const bool integers = is_integer(0) && (!two || is_integer(1)) && node.type != Type::kReal;
  if (integers) return of_integers(node.operation, child(0).integer, two ? child(1).integer : 0);
  return of_reals(node.operation, real_child(0), two ? real_child(1) : 0);
}

}  // namespace

double evaluate(const ScoreExpression& expression, const ScorePoint& point) {
  const Value value = value_of(expression.node(), point);
  return expression.node().type == Type::kInteger ? static_cast<double>(value.integer) : value.real;
}

}  // namespace annulus::attention
