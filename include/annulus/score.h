#ifndef ANNULUS_SCORE_H_
#define ANNULUS_SCORE_H_

// How the product of a query and a key becomes the score that softmax sums:
//
//   score = score_mod(capped(scale q.k) + alibi[h] (k - q) + bias[h][q - k], b, h, q, k)
//
// with q, k positions, h the query head, b the batch, capped(x) = c tanh(x / c) where there is a
// soft-cap c, and score_mod an expression of the caller's where there is one. Which keys a query
// sees is decided by the pattern (annulus/pattern.h). As text, for example
//   Score::parse("scale(0.125), softcap(30), alibi([0.5, 0.25])")
//   Score::parse("score_mod(score + 0.5 * min(k - q, 0))")

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "annulus/score_expression.h"
#include "annulus/version.h"

namespace annulus::inline v0 {

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
