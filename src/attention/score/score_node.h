#ifndef ANNULUS_ATTENTION_SCORE_SCORE_NODE_H_
#define ANNULUS_ATTENTION_SCORE_SCORE_NODE_H_

// The tree behind ScoreExpression. Nodes are immutable and shared; every way to make one goes
// through make_score_node(), which checks types and limits.

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "annulus/score.h"

namespace annulus::inline v0::detail {

struct ScoreTableData {
  bool whole = false;        // integers, else reals
  std::int64_t rows = 1;     // 1 where there is one index
  std::int64_t columns = 0;  // of a row; of the whole table where there is one index
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
  int depth = 1;  // levels of this tree
  int nodes = 1;  // of this tree, shared ones as often as they occur
};

}  // namespace annulus::inline v0::detail

namespace annulus::attention {

// Bytes of the longest text of a score, or of an expression in it, that is read.
constexpr std::size_t kMaxScoreText = std::size_t{16} << 20;

using ScoreNode = detail::ScoreNode;
using ScoreOperation = detail::ScoreOperation;
using ScoreNodePointer = std::shared_ptr<const ScoreNode>;

constexpr int kMaxScoreDepth = 64;
constexpr int kMaxScoreNodes = 1024;

// How tightly the operation of a text binds, as in C++; the loosest first.
enum ScoreStrength : int { kOrs, kAnds, kComparison, kSum, kProduct, kPrefix, kAtom };

struct ScoreOperationInfo {
  ScoreOperation operation;
  std::string_view sign;  // the operator, or the name of a variable or function
  ScoreStrength strength;
  int operands;
};
// All operations with a text: variables (kAtom without operands), prefixes, signs between two
// operands, and functions (kAtom with operands).
const ScoreOperationInfo& info_of(ScoreOperation operation);
std::span<const ScoreOperationInfo> score_operations();

// Throws Error{kInvalidArgument} for operands of a type that the operation does not take, and
// beyond the limits. Requires: as many children as the operation has operands.
ScoreNodePointer make_score_node(ScoreOperation operation, std::vector<ScoreNodePointer> children);
// Throw Error{kInvalidArgument} as ScoreExpression's constructors and ScoreTable's calls do.
ScoreNodePointer make_score_integer(std::int64_t value);
ScoreNodePointer make_score_real(double value);
std::shared_ptr<const detail::ScoreTableData> make_score_table(detail::ScoreTableData table);
ScoreNodePointer make_score_lookup(std::shared_ptr<const detail::ScoreTableData> table,
                                   std::vector<ScoreNodePointer> indices);

bool equal(const ScoreNode& a, const ScoreNode& b);

// Parses one expression from text[*at] on and moves *at behind it. Throws Error{kParse} with the
// column.
ScoreNodePointer parse_score_expression(std::string_view text, std::size_t* at);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_SCORE_SCORE_NODE_H_
