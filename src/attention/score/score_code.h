#ifndef ANNULUS_ATTENTION_SCORE_SCORE_CODE_H_
#define ANNULUS_ATTENTION_SCORE_SCORE_CODE_H_

// A score expression on the device and on the CPU. The text for the kernel says what the expression
// looks like, its numbers and tables are run-time parameters; the other end is
// templates/tile/score_mod.cuh, whose ScoreContext has the functions that the text calls.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "annulus/score_expression.h"

namespace annulus::attention {

// What makes another kernel: the text, over (m, score, b, h, q, k) with m a tile::ScoreContext, and
// what follows from it.
struct ScoreStructure {
  std::string text;
  bool positions = false;   // it reads q or k
  bool costly = false;      // better evaluated in a loop than written out for every element
  bool is_long = false;     // and there a piece at a time
  double instructions = 0;  // about, for one element
  double special = 0;       // of them results of special functions

  bool present() const { return !text.empty(); }
};

struct ScoreCode {
  ScoreStructure structure;
  std::vector<std::int32_t> numbers;  // for ScoreParams::numbers, at most kernels::kScoreNumbers
  // For ScoreParams::words: numbers that found no room, then the tables. Reals as their bits.
  std::vector<std::int32_t> words;
};

// Nothing where there is no expression. Throws Error{kUnsupported} where the tables together are
// too large for a device.
ScoreCode score_code(const std::optional<ScoreExpression>& expression);

// Its structure alone: no table is copied.
ScoreStructure score_structure(const std::optional<ScoreExpression>& expression);

struct ScorePoint {
  double score = 0;
  std::int64_t b = 0;
  std::int64_t h = 0;
  std::int64_t q = 0;
  std::int64_t k = 0;
};

// The value in float64; integers as on the device, numbers and tables rounded to fp32 as there. The
// definition that the kernels are tested against.
double evaluate(const ScoreExpression& expression, const ScorePoint& point);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_SCORE_SCORE_CODE_H_
