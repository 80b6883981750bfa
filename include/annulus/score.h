#ifndef ANNULUS_SCORE_H_
#define ANNULUS_SCORE_H_

// Scores of the caller's own: an expression over (score, b, h, q, k), as the score_mod of
// FlexAttention (Dong et al., 2024) is a function of them, built with ordinary operators or parsed
// from text, for example
//   const auto [score, b, h, q, k] = score_variables();
//   problem.score.score_mod = where(q >= k, score + 0.5 * (k - q), -1e4);
//   ScoreExpression::parse("where(q >= k, score + 0.5 * (k - q), -1e4)");
// b is the batch, h the query head, q and k positions as in annulus/pattern.h; what score is and
// what becomes of the value is in annulus/score.h. A kernel is compiled for the structure of an
// expression. Numbers and tables are run-time values, so a change of them compiles nothing.
//
// A value is an integer (b, h, q, k, whole numbers), a real number (score, 0.5) or a truth (q < k),
// and an integer becomes a real number where one is wanted. Integers have 32 bits and wrap around.
// Real numbers are fp32. Functions of them have errors of about 1e-6 and treat numbers below 2^-126
// as 0 (docs/patterns.md). Real numbers that differ by less than that may compare either way.
//
// Everything here is a value: immutable once made, free to share between threads.

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "annulus/types.h"
#include "annulus/version.h"

namespace annulus::inline v0 {

namespace detail {
struct ScoreNode;  // src/attention/score/score_node.h
struct ScoreTableData;

enum class ScoreOperation {
  kScore,
  kBatch,
  kHead,
  kQuery,
  kKey,
  kInteger,
  kReal,
  kTable,
  kNegate,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kMin,
  kMax,
  kAbs,
  kFloor,
  kSqrt,
  kExp,
  kExp2,
  kLog,
  kLog2,
  kTanh,
  kSigmoid,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kEqual,
  kNotEqual,
  kAnd,
  kOr,
  kNot,
  kWhere,
};
}  // namespace detail

template <typename T>
concept ScoreInteger = std::integral<T> && !std::same_as<T, bool>;

class ANNULUS_EXPORT ScoreExpression {
 public:
  ScoreExpression();  // score
  // A number. Throws Error{kInvalidArgument} for NaN, finite numbers beyond fp32 and integers
  // beyond 32 bits. Infinities are numbers.
  template <ScoreInteger T>
  ScoreExpression(T value)
      : ScoreExpression(number(std::in_range<std::int64_t>(value) ? static_cast<std::int64_t>(value)
                                                                  : INT64_MAX)) {}
  template <std::floating_point T>
  ScoreExpression(T value) : ScoreExpression(number(static_cast<double>(value))) {}
  explicit ScoreExpression(std::shared_ptr<const detail::ScoreNode> node);
  // No move: an expression that was moved from would be none. A copy is a pointer.
  ScoreExpression(const ScoreExpression&) = default;
  ScoreExpression& operator=(const ScoreExpression&) = default;

  // Grammar: docs/patterns.md. Throws Error{kParse} with the column.
  static ScoreExpression parse(std::string_view text);
  // Text that parses back to an equal tree.
  std::string to_string() const;

  // All of these throw Error{kInvalidArgument} for a truth where a number is wanted or the reverse,
  // for real numbers given to div and mod, and for trees of more than 64 levels or 1024 nodes.
  using E = ScoreExpression;
  using Op = detail::ScoreOperation;
  friend E operator-(const E& a) { return make(Op::kNegate, {a}); }
  friend E operator+(const E& a, const E& b) { return make(Op::kAdd, {a, b}); }
  friend E operator-(const E& a, const E& b) { return make(Op::kSubtract, {a, b}); }
  friend E operator*(const E& a, const E& b) { return make(Op::kMultiply, {a, b}); }
  // Always real: 1 / 2 is 0.5.
  friend E operator/(const E& a, const E& b) { return make(Op::kDivide, {a, b}); }
  // For integers: the quotient rounded down, and the remainder, which has the sign of b. Both are 0
  // where b is 0.
  friend E div(const E& a, const E& b) { return make(Op::kFloorDivide, {a, b}); }
  friend E mod(const E& a, const E& b) { return make(Op::kModulo, {a, b}); }
  friend E min(const E& a, const E& b) { return make(Op::kMin, {a, b}); }  // of NaN and x it is x
  friend E max(const E& a, const E& b) { return make(Op::kMax, {a, b}); }
  friend E abs(const E& a) { return make(Op::kAbs, {a}); }
  friend E floor(const E& a) { return make(Op::kFloor, {a}); }  // real
  friend E sqrt(const E& a) { return make(Op::kSqrt, {a}); }
  friend E exp(const E& a) { return make(Op::kExp, {a}); }
  friend E exp2(const E& a) { return make(Op::kExp2, {a}); }
  friend E log(const E& a) { return make(Op::kLog, {a}); }
  friend E log2(const E& a) { return make(Op::kLog2, {a}); }
  friend E tanh(const E& a) { return make(Op::kTanh, {a}); }
  friend E sigmoid(const E& a) { return make(Op::kSigmoid, {a}); }  // 1 / (1 + exp(-a))
  friend E operator<(const E& a, const E& b) { return make(Op::kLess, {a, b}); }
  friend E operator<=(const E& a, const E& b) { return make(Op::kLessEqual, {a, b}); }
  friend E operator>(const E& a, const E& b) { return make(Op::kGreater, {a, b}); }
  friend E operator>=(const E& a, const E& b) { return make(Op::kGreaterEqual, {a, b}); }
  friend E eq(const E& a, const E& b) { return make(Op::kEqual, {a, b}); }  // text: a == b
  friend E ne(const E& a, const E& b) { return make(Op::kNotEqual, {a, b}); }
  friend E operator&(const E& a, const E& b) { return make(Op::kAnd, {a, b}); }
  friend E operator|(const E& a, const E& b) { return make(Op::kOr, {a, b}); }
  friend E operator~(const E& a) { return make(Op::kNot, {a}); }
  // a where the truth c holds, else b; the operand that is not taken may be anything, also NaN.
  friend E where(const E& c, const E& a, const E& b) { return make(Op::kWhere, {c, a, b}); }

  const detail::ScoreNode& node() const { return *node_; }
  const std::shared_ptr<const detail::ScoreNode>& shared_node() const { return node_; }
  // Equal trees: the same operations on the same numbers; tables by their content.
  friend ANNULUS_EXPORT bool operator==(const ScoreExpression& a, const ScoreExpression& b);

 private:
  static ScoreExpression number(std::int64_t value);
  static ScoreExpression number(double value);
  static ScoreExpression make(detail::ScoreOperation operation,
                              const std::vector<ScoreExpression>& operands);

  std::shared_ptr<const detail::ScoreNode> node_;
};

struct ScoreVariables {
  ScoreExpression score, b, h, q, k;
};
ANNULUS_EXPORT ScoreVariables score_variables();

// A table of the caller's numbers, read by one index or by two, for example by head, position or
// distance. An index beyond an end reads that end.
class ANNULUS_EXPORT ScoreTable {
 public:
  // columns: 0 for one index; otherwise the values are rows of that many columns, and table(i, j)
  // is row i, column j. Both throw Error{kInvalidArgument} for no values, more than 2^28 values, an
  // incomplete last row, and numbers that an expression does not take.
  static ScoreTable reals(std::vector<double> values, std::int64_t columns = 0);
  static ScoreTable integers(std::vector<std::int32_t> values, std::int64_t columns = 0);

  // The indices are integers. Both throw Error{kInvalidArgument} where they are not, or where their
  // number is not that of the table.
  ScoreExpression operator()(const ScoreExpression& i) const;
  ScoreExpression operator()(const ScoreExpression& i, const ScoreExpression& j) const;

 private:
  explicit ScoreTable(std::shared_ptr<const detail::ScoreTableData> data);
  std::shared_ptr<const detail::ScoreTableData> data_;
};

// How the product of a query and a key becomes the score that softmax sums:
//
//   score = score_mod(capped(scale q.k) + alibi[h] (k - q) + bias[h][q - k], b, h, q, k)
//
// with q, k positions, h the query head, b the batch, capped(x) = c tanh(x / c) where there is a
// soft-cap c, and score_mod an expression of the caller's where there is one. Which keys a query
// sees is decided by the pattern (annulus/pattern.h). As text, for example
//   Score::parse("scale(0.125), softcap(30), alibi([0.5, 0.25])")
//   Score::parse("score_mod(score + 0.5 * min(k - q, 0))")

struct ANNULUS_EXPORT Score {
  std::optional<double> scale;  // 1 / sqrt(Dqk) unless given; any finite number
  double softcap = 0;           // c > 0; 0: none

  // The lists below are by head: head h takes entry h mod their number, so a single entry serves
  // all heads. Empty: none.
  std::vector<double> alibi;  // slopes: score += slope (k - q)
  // Tables of 2 n + 1 numbers each, all of one length: score += table[clamp(q - k, -n, n) + n].
  std::vector<std::vector<double>> bias;
  // Logits of an attention sink, which acts as a key without a value that every row sees. It adds
  // exp(x) to the row's sum, and so to LSE, when O is written; a carried state does not contain it.
  // A row that sees no key then has LSE = x instead of -inf, and O = 0.
  std::vector<double> sink_logit;

  // Replaces the score of every pair that the pattern shows. A value of -inf hides the key as the
  // pattern would: a row that sees no other key is empty. NaN and +inf make the row NaN.
  std::optional<ScoreExpression> score_mod;

  // Grammar: docs/patterns.md. Throws Error{kParse} with the column.
  static Score parse(std::string_view text);
  // Text that parses back to an equal score; empty where nothing is set.
  std::string to_string() const;

  friend bool operator==(const Score&, const Score&) = default;
};

}  // namespace annulus::inline v0

#endif  // ANNULUS_SCORE_H_
