#ifndef ANNULUS_SELECTION_REFERENCE_SCORES_H_
#define ANNULUS_SELECTION_REFERENCE_SCORES_H_

// The scores by which the oracle chooses blocks: pools of rows and antidiagonals of cells, in fp32,
// with the same operations in the same order as in the kernels.

#include <cstdint>
#include <vector>

#include "annulus/selection.h"
#include "attention/oracle/reference.h"
#include "pattern/interval.h"

namespace annulus::selection {

// exp2 as templates/tile/exact_math.cuh computes it, bit for bit.
float exact_exp2(float x);

// fmaxf as a device computes it: it returns a number rather than NaN, and +0 rather than -0.
float larger(float a, float b);

// Q or K of one head.
struct HostRows {
  const std::uint16_t* data = nullptr;
  std::int64_t stride = 0;  // from one row to the next
  pattern::Interval rows;   // the rows that count
  std::int64_t dim = 0;
  Dtype dtype = Dtype::kBfloat16;

  float element(std::int64_t row, std::int64_t d) const;  // 0 for rows that do not count
  // The pooled vector of those of the rows [first, first + block) that count; 0 if none does.
  std::vector<float> pooled(std::int64_t first, std::int64_t block, Pool pool) const;
};

// The scores of one batch's head. Requires: the selection scores blocks. The problem, the selection
// and the inputs must outlive the object.
class ListScores {
 public:
  ListScores(const Problem& problem, const Selection& selection, const HostInputs& inputs,
             std::int64_t b, std::int64_t head);

  // One number for each block of a row, [columns]: base-2 scores, or masses among the candidates.
  std::vector<float> row(std::int64_t row, const std::uint8_t* candidate) const;
  // Whether the numbers are masses: they are if a row of blocks has several rows of cells.
  bool are_masses() const { return parts_ > 1; }
  std::int64_t parts_of(std::int64_t row) const;  // rows of cells that exist

 private:
  std::vector<float> cell_logs(std::int64_t cell_row) const;

  const Problem& problem_;
  const Selection& selection_;
  HostRows q_, k_;
  std::int64_t parts_ = 1;
  std::vector<std::vector<float>> keys_;  // the pooled vector of each block column
};

}  // namespace annulus::selection

#endif  // ANNULUS_SELECTION_REFERENCE_SCORES_H_
