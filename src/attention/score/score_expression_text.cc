// Score expressions as text that parses to the same tree.
#include <fmt/core.h>

#include <iterator>

#include "attention/score/score_node.h"

namespace annulus {
namespace attention {
namespace {

// The text of a real number, which is parsed as a real number again because it has a point, an
// exponent or a name.
std::string real_text(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == text.npos) text += ".0";  // "1e+30", "inf"
  return text;
}

void print_row(const detail::ScoreTableData& table, std::int64_t row, std::string* text) {
  *text += '[';
  for (std::int64_t column = 0; column < table.columns; ++column) {
    const auto at = static_cast<std::size_t>(row * table.columns + column);
    if (column > 0) *text += ", ";
    *text += table.whole ? fmt::format("{}", table.integers[at]) : real_text(table.reals[at]);
  }
  *text += ']';
}

void print_table(const detail::ScoreTableData& table, std::string* text) {
  if (!table.two_indices) return print_row(table, 0, text);
  *text += '[';
  for (std::int64_t row = 0; row < table.rows; ++row) {
    if (row > 0) *text += ", ";
    print_row(table, row, text);
  }
  *text += ']';
}

bool is_number(const ScoreNode& node) {
  return node.operation == ScoreOperation::kInteger || node.operation == ScoreOperation::kReal;
}

ScoreStrength strength(const ScoreNode& node) {
  if (is_number(node) || node.operation == ScoreOperation::kTable) return kAtom;
  return info_of(node.operation).strength;
}

// Appends the text of a node. An operand gets parentheses if it binds less tightly than `needed`.
void print(const ScoreNode& node, std::string* text) {
  const auto operand = [&](const ScoreNode& child, int needed) {
    const bool parentheses = strength(child) < needed;
    if (parentheses) *text += '(';
    print(child, text);
    if (parentheses) *text += ')';
  };
  if (node.operation == ScoreOperation::kInteger) {
    *text += fmt::format("{}", node.integer);
    return;
  }
  if (node.operation == ScoreOperation::kReal) {
    *text += real_text(node.real);
    return;
  }
  if (node.operation == ScoreOperation::kTable) {
    *text += "table(";
    print_table(*node.table, text);
    for (const ScoreNodePointer& index : node.children) {
      *text += ", ";
      print(*index, text);
    }
    *text += ')';
    return;
  }
  const ScoreOperationInfo& info = info_of(node.operation);
  if (info.strength == kAtom) {
    *text += info.sign;
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      *text += i == 0 ? "(" : ", ";
      print(*node.children[i], text);
    }
    if (!node.children.empty()) *text += ')';
  } else if (info.strength == kPrefix) {
    *text += info.sign;
    // "-2" is a number, and "-(2)" is the negation of a number, so a number gets parentheses. A
    // prefix after a prefix gets parentheses as well, because "--x" reads like a decrement.
    operand(*node.children[0], is_number(*node.children[0]) ? kAtom + 1 : kAtom);
  } else {
    // Signs group from the left; comparisons do not chain.
    const int left = info.strength == kComparison ? kSum : info.strength;
    operand(*node.children[0], left);
    *text += fmt::format(" {} ", info.sign);
    operand(*node.children[1], info.strength + 1);
  }
}

}  // namespace
}  // namespace attention

inline namespace v0 {

std::string ScoreExpression::to_string() const {
  std::string text;
  attention::print(*node_, &text);
  return text;
}

}  // namespace v0
}  // namespace annulus
