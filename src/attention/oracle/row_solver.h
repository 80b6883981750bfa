#ifndef ANNULUS_ATTENTION_ORACLE_ROW_SOLVER_H_
#define ANNULUS_ATTENTION_ORACLE_ROW_SOLVER_H_

// One row of the reference, in double precision.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "annulus/oracle.h"
#include "attention/oracle/host_rows.h"

namespace annulus::attention {

// One (batch, head) of a tensor as [rows, dim] floats without their scales, and which rows have a
// value or a scale that is not finite.
struct Matrix {
  std::vector<float> values;
  std::vector<double> scales;  // of each row
  std::vector<std::uint8_t> tainted;

  void load(const HostRows& from, std::int64_t rows, std::int64_t dim);
};

// Which keys each row sees through one branch of the pattern, one bit for each pair. The pattern is
// asked pair by pair. If all heads of all batches see the same, the bits of a row are kept
// for the next (batch, head), unless they would take more than 256 MB.
class VisibleKeys {
 public:
  VisibleKeys(const Problem& problem, Pattern branch);

  // The bits of a row, valid until the next call with the same scratch. Only one thread at a time
  // may ask for a row, as it may write the bits that are kept.
  const std::vector<std::uint64_t>& row(std::int64_t batch, std::int64_t head, std::int64_t row,
                                        std::vector<std::uint64_t>* scratch);

 private:
  const Problem& problem_;
  Pattern branch_;
  PatternContext context_;
  std::size_t words_;  // of a row
  std::vector<std::uint64_t> kept_;
  std::vector<std::uint8_t> known_;
};

// The state that a row starts from.
struct Carried {
  double m = -std::numeric_limits<double>::infinity();
  double l = 0;
  const float* acc = nullptr;
};

struct RowAnswer {
  double* o = nullptr;  // [Dv], zeros on entry
  double m = -std::numeric_limits<double>::infinity();
  double l = 0;
  bool tainted = false;
};

// Computes rows of one thread, whose scratch it holds; the branches are shared by the solvers of
// all threads.
class RowSolver {
 public:
  RowSolver(const Problem& problem, std::vector<VisibleKeys>& branches);

  // The answer of a row of one (batch, head), whose operands are q, k and v.
  void solve(std::int64_t batch, std::int64_t head, std::int64_t row, const Matrix& q,
             const Matrix& k, const Matrix& v, const Carried& carried, RowAnswer* answer);

 private:
  // Fills keys_ and scores_ with the keys that the row sees and their base-2 scores, and raises
  // answer->m to the row max.
  void collect_scores(std::int64_t batch, std::int64_t head, std::int64_t row, const Matrix& q,
                      const Matrix& k, const Matrix& v, RowAnswer* answer);

  // A scaled product with soft-cap, terms of the positions and the score expression applied.
  double final_score(std::int64_t batch, std::int64_t head, std::int64_t row, std::int64_t key,
                     double score, bool* tainted) const;

  // Adds the carried state, rescaled to the row max.
  void add_carried(const Carried& carried, RowAnswer* answer) const;

  // Adds the sink logit, the score of a key without a value.
  void add_sink(std::int64_t head, RowAnswer* answer) const;

  const Problem& problem_;
  std::vector<VisibleKeys>& branches_;
  double scale_;
  std::int64_t steps_of_pair_;
  std::vector<double> query_;
  std::vector<std::uint64_t> bits_;
  std::vector<std::size_t> keys_;
  std::vector<double> scores_;
};

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_ORACLE_ROW_SOLVER_H_
