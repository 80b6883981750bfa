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

// One (batch, head) of a tensor as [rows, dim] floats without scales, its scales, and the rows that
// have a value or a scale that is not finite.
struct Matrix {
  std::vector<float> values;
  std::vector<double> scales;  // the scale of each row
  std::vector<std::uint8_t> tainted;

  void load(const HostRows& from, std::int64_t rows, std::int64_t dim);
};

// Which keys each row sees through one branch of the pattern, one bit for each pair. The pattern is
// evaluated for each pair. If all heads of all batches see the same, the bits of a row are kept for
// the next (batch, head), unless they would take more than 256 MB.
class VisibleKeys {
 public:
  VisibleKeys(const Problem& problem, Pattern branch);

  // The bits of a row, valid until the next call with the same scratch. Only one thread at a time
  // may call this for a row, as the call may write the bits that are kept.
  const std::vector<std::uint64_t>& row(std::int64_t batch, std::int64_t head, std::int64_t row,
                                        std::vector<std::uint64_t>* scratch);

 private:
  const Problem& problem_;
  Pattern branch_;
  PatternContext context_;
  std::size_t words_;  // words of a row
  std::vector<std::uint64_t> kept_;
  std::vector<std::uint8_t> known_;
};

// The state from which a row starts.
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

// Computes the rows of one thread and holds the scratch memory of that thread. The solvers of all
// threads share the branches.
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

  // The score of a pair: its scaled product, with soft-cap, the terms of the positions and the
  // score expression applied.
  double final_score(std::int64_t batch, std::int64_t head, std::int64_t row, std::int64_t key,
                     double score, bool* tainted) const;

  // Adds the carried state, rescaled to the max of the row.
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
