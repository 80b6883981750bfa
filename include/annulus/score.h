#ifndef ANNULUS_SCORE_H_
#define ANNULUS_SCORE_H_

// A score is what softmax sums for a query and a key:
//
//   score = score_mod(capped(scale q.k) + alibi[h] (k - q) + bias[h][q - k], b, h, q, k)
//
// with q, k positions as in annulus/pattern.h, h the query head, b the batch, capped(x) = c tanh(x
// / c) if there is a soft-cap c, else x, and score_mod an optional expression of the caller. The
// pattern decides which keys a query sees. As text:
//
//   Score::parse("scale(0.125), softcap(30), alibi([0.5, 0.25])")
//   Score::parse("score_mod(score + 0.5 * min(k - q, 0))")
//
// A score_mod is an expression over (score, b, h, q, k), like the score_mod of FlexAttention (Dong
// et al., 2024), built with operators or parsed from text:
//
//   const auto [score, b, h, q, k] = score_variables();
//   problem.score.score_mod = where(q >= k, score + 0.5 * (k - q), -1e4);
//   ScoreExpression::parse("where(q >= k, score + 0.5 * (k - q), -1e4)");
//
// A kernel is compiled for the structure of an expression. Numbers and tables are run-time values,
// so changing them compiles nothing.
//
// A value is an integer (b, h, q, k, whole numbers), a real number (score, 0.5) or a truth value (q
// < k). An integer converts to a real number if one is expected. Integers have 32 bits and wrap
// around. Real numbers are fp32; functions of them have errors of about 1e-6 and treat numbers
// below 2^-126 as 0 (docs/patterns.md). Comparisons of real numbers that differ by less than these
// errors may have either result.
//
// All types here are immutable values that threads may share.

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
  kWhere
};
}  // namespace detail

template <typename T>
concept ScoreInteger = std::integral<T> && !std::same_as<T, bool>;

class ANNULUS_EXPORT ScoreExpression {
 public:
  ScoreExpression();  // score
  // A number. Throws Error{kInvalidArgument} for NaN, for finite numbers beyond fp32 and for
  // integers beyond 32 bits. Infinities are allowed.
  template <ScoreInteger T>
  ScoreExpression(T value)
      : ScoreExpression(number(std::in_range<std::int64_t>(value) ? static_cast<std::int64_t>(value)
                                                                  : INT64_MAX)) {}
  template <std::floating_point T>
  ScoreExpression(T value) : ScoreExpression(number(static_cast<double>(value))) {}
  explicit ScoreExpression(std::shared_ptr<const detail::ScoreNode> node);
  ScoreExpression(const ScoreExpression&) = default;
  ScoreExpression& operator=(const ScoreExpression&) = default;

  // Parses a text; docs/patterns.md has the grammar. Throws Error{kParse} with the column.
  static ScoreExpression parse(std::string_view text);
  // A text that parses to an equal tree.
  std::string to_string() const;

  // The operators and functions throw Error{kInvalidArgument} for a truth value instead of a number
  // or the reverse, for real operands of div and mod, and above 64 levels or 1024 nodes.
  using E = ScoreExpression;
  using Op = detail::ScoreOperation;
  friend E operator-(const E& a) { return make(Op::kNegate, {a}); }
  friend E operator+(const E& a, const E& b) { return make(Op::kAdd, {a, b}); }
  friend E operator-(const E& a, const E& b) { return make(Op::kSubtract, {a, b}); }
  friend E operator*(const E& a, const E& b) { return make(Op::kMultiply, {a, b}); }
  // The result is always real: 1 / 2 is 0.5.
  friend E operator/(const E& a, const E& b) { return make(Op::kDivide, {a, b}); }
  // For integers: the quotient rounded down, and the remainder with b's sign. Both are 0 if b is 0.
  friend E div(const E& a, const E& b) { return make(Op::kFloorDivide, {a, b}); }
  friend E mod(const E& a, const E& b) { return make(Op::kModulo, {a, b}); }
  friend E min(const E& a, const E& b) { return make(Op::kMin, {a, b}); }  // min(NaN, x) is x
  friend E max(const E& a, const E& b) { return make(Op::kMax, {a, b}); }
  friend E abs(const E& a) { return make(Op::kAbs, {a}); }
  friend E floor(const E& a) { return make(Op::kFloor, {a}); }  // the result is real
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
  friend E eq(const E& a, const E& b) { return make(Op::kEqual, {a, b}); }  // in text: a == b
  friend E ne(const E& a, const E& b) { return make(Op::kNotEqual, {a, b}); }
  friend E operator&(const E& a, const E& b) { return make(Op::kAnd, {a, b}); }
  friend E operator|(const E& a, const E& b) { return make(Op::kOr, {a, b}); }
  friend E operator~(const E& a) { return make(Op::kNot, {a}); }
  // a if the truth value c holds, else b. The other operand may have any value, even NaN.
  friend E where(const E& c, const E& a, const E& b) { return make(Op::kWhere, {c, a, b}); }

  const detail::ScoreNode& node() const { return *node_; }
  const std::shared_ptr<const detail::ScoreNode>& shared_node() const { return node_; }
  // Compares trees: equal operations on equal numbers. Tables compare by content.
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

// A table of the caller's numbers with one or two indices, for example head, position or distance.
// An index beyond an end reads the entry at that end.
class ANNULUS_EXPORT ScoreTable {
 public:
  // With columns = 0 the table has one index. Otherwise the values are rows of `columns` numbers,
  // and table(i, j) is row i, column j. Both functions throw Error{kInvalidArgument} for no values,
  // more than 2^28 values, an incomplete last row, and numbers that ScoreExpression refuses.
  static ScoreTable reals(std::vector<double> values, std::int64_t columns = 0);
  static ScoreTable integers(std::vector<std::int32_t> values, std::int64_t columns = 0);

  // Both throw Error{kInvalidArgument} for an index that is not an integer and a wrong number of
  // indices.
  ScoreExpression operator()(const ScoreExpression& i) const;
  ScoreExpression operator()(const ScoreExpression& i, const ScoreExpression& j) const;

 private:
  explicit ScoreTable(std::shared_ptr<const detail::ScoreTableData> data);
  std::shared_ptr<const detail::ScoreTableData> data_;
};

// The terms of a score; the formula is at the top of this file.
struct ANNULUS_EXPORT Score {
  std::optional<double> scale;  // any finite number; not set: 1 / sqrt(Dqk)
  double softcap = 0;           // c > 0; 0: no soft-cap

  // The following lists have entries for heads: head h uses entry h mod the size, so that a single
  // entry serves all heads. Empty: no such term.
  std::vector<double> alibi;  // slopes: score += slope (k - q)
  // Tables of 2 n + 1 numbers with one n for all heads: score += table[clamp(q - k, -n, n) + n].
  std::vector<std::vector<double>> bias;
  // Logits x of an attention sink, which acts as a key without a value that every row sees. It adds
  // exp(x) to the row's sum, and thereby to LSE, when O is written; a carried state does not
  // contain it. A row without visible keys has LSE = x instead of -inf, and O = 0.
  std::vector<double> sink_logit;
  // Replaces the score of every visible pair. A value of -inf hides the key like the pattern does:
  // a row without other keys is empty. NaN and +inf turn the row into NaN.
  std::optional<ScoreExpression> score_mod;

  // Parses a text; docs/patterns.md has the grammar. Throws Error{kParse} with the column.
  static Score parse(std::string_view text);
  // A text that parses to an equal score; empty if the score has no terms.
  std::string to_string() const;

  friend bool operator==(const Score&, const Score&) = default;
};

}  // namespace annulus::inline v0

#endif  // ANNULUS_SCORE_H_
