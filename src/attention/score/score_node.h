#ifndef ANNULUS_ATTENTION_SCORE_SCORE_NODE_H_
#define ANNULUS_ATTENTION_SCORE_SCORE_NODE_H_

// The tree of a ScoreExpression. Nodes are immutable and shared; every way to make one goes through
// make_score_node(), which checks types and limits.

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "annulus/score.h"

namespace annulus::inline v0::detail {

struct ScoreTableData {
  bool whole = false;        // integers if true, else real numbers
  std::int64_t rows = 1;     // 1 for a table with one index
  std::int64_t columns = 0;  // columns of a row; for a table with one index, of the whole table
  bool two_indices = false;
  std::vector<std::int32_t> integers;
  std::vector<double> reals;

  friend bool operator==(const ScoreTableData&, const ScoreTableData&) = default;
};

struct ScoreNode {
  enum class Type { kInteger, kReal, kTruth };

  ScoreOperation operation = ScoreOperation::kScore;
  Type type = Type::kReal;
  std::int32_t integer = 0;  // kInteger
  double real = 0;           // kReal
  std::shared_ptr<const ScoreTableData> table = {};
  std::vector<std::shared_ptr<const ScoreNode>> children = {};
  int depth = 1;  // levels of the tree below this node
  int nodes = 1;  // nodes of this tree; shared ones count each time they occur
};

}  // namespace annulus::inline v0::detail

namespace annulus::attention {

// The most bytes that a text of a score, or of an expression in it, may have.
constexpr std::size_t kMaxScoreText = std::size_t{16} << 20;

using ScoreNode = detail::ScoreNode;
using ScoreOperation = detail::ScoreOperation;
using ScoreNodePointer = std::shared_ptr<const ScoreNode>;

constexpr int kMaxScoreDepth = 64;
constexpr int kMaxScoreNodes = 1024;

// How tightly an operation binds in a text, as in C++; the loosest comes first.
enum ScoreStrength : int { kOrs, kAnds, kComparison, kSum, kProduct, kPrefix, kAtom };

struct ScoreOperationInfo {
  ScoreOperation operation;
  std::string_view sign;  // the operator, or the name of a variable or function
  ScoreStrength strength;
  int operands;
};
// All operations that have a text: variables (kAtom without operands), prefixes, signs between two
// operands, and functions (kAtom with operands).
const ScoreOperationInfo& info_of(ScoreOperation operation);
std::span<const ScoreOperationInfo> score_operations();

// Throws Error{kInvalidArgument} for operands of a type that the operation does not take, and for
// trees beyond the limits. Requires: one child for each operand of the operation.
ScoreNodePointer make_score_node(ScoreOperation operation, std::vector<ScoreNodePointer> children);
// Throw Error{kInvalidArgument} in the same cases as ScoreExpression's constructors and
// ScoreTable's functions.
ScoreNodePointer make_score_integer(std::int64_t value);
ScoreNodePointer make_score_real(double value);
std::shared_ptr<const detail::ScoreTableData> make_score_table(detail::ScoreTableData table);
ScoreNodePointer make_score_lookup(std::shared_ptr<const detail::ScoreTableData> table,
                                   std::vector<ScoreNodePointer> indices);

bool equal(const ScoreNode& a, const ScoreNode& b);

// Parses one expression from text[*at] on, and moves *at to the end of the expression. Throws
// Error{kParse} with the column.
ScoreNodePointer parse_score_expression(std::string_view text, std::size_t* at);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_SCORE_SCORE_NODE_H_
