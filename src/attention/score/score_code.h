#ifndef ANNULUS_ATTENTION_SCORE_SCORE_CODE_H_
#define ANNULUS_ATTENTION_SCORE_SCORE_CODE_H_

// A score expression on the device and on the CPU. The text for the kernel has the structure of the
// expression; its numbers and tables are run-time parameters. templates/tile/score_mod.cuh is the
// device side: its ScoreContext has the functions that the text calls.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "annulus/score.h"

namespace annulus::attention {

// The part of an expression that is compiled into a kernel: the text, over (m, score, b, h, q, k)
// where m is a tile::ScoreContext, and what can be derived from the text.
struct ScoreStructure {
  std::string text;
  bool positions = false;       // the text reads q or k
  bool costly = false;          // evaluated in a loop (ScoreMod::kInLoop)
  bool is_long = false;         // evaluated one piece at a time in that loop (ScoreMod::kLong)
  double instructions = 0;      // estimate for one element
  double special = 0;           // the results of special functions among them
  std::int64_t operations = 0;  // numbers and functions in the text

  bool present() const { return !text.empty(); }
};

struct ScoreCode {
  ScoreStructure structure;
  std::vector<std::int32_t>
      numbers;  // values of ScoreParams::numbers, at most kernels::kScoreNumbers
  // For ScoreParams::words: the numbers beyond kScoreNumbers, then the tables. Reals are stored as
  // their bits.
  std::vector<std::int32_t> words;
};

// The code of an expression, empty if there is none. Throws Error{kUnsupported} if the tables
// together are too large for a device.
ScoreCode score_code(const std::optional<ScoreExpression>& expression);

// The structure alone; no table is copied.
ScoreStructure score_structure(const std::optional<ScoreExpression>& expression);

struct ScorePoint {
  double score = 0;
  std::int64_t b = 0;
  std::int64_t h = 0;
  std::int64_t q = 0;
  std::int64_t k = 0;
};

// The value of an expression in float64. Integers wrap as on the device, and numbers and tables are
// rounded to fp32, as in the kernel. Tests compare kernels with this definition.
double evaluate(const ScoreExpression& expression, const ScorePoint& point);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_SCORE_SCORE_CODE_H_
