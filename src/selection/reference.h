#ifndef ANNULUS_SELECTION_REFERENCE_H_
#define ANNULUS_SELECTION_REFERENCE_H_

// The oracle of a selection: the same blocks, chosen on the CPU straight from the definition. It
// sorts, although the kernels search; it evaluates the pattern for single pairs; and it shares no
// code with the kernels. Its fp32 operations are the same as in the kernels and in the same order,
// so both choose the same blocks.

#include <cstdint>
#include <vector>

#include "annulus/selection.h"
#include "attention/oracle/reference.h"

namespace annulus::selection {

struct HostBlocks {
  std::int64_t batch = 0, heads = 0, rows = 0, columns = 0;
  std::vector<std::uint8_t> visible;  // [B, H, rows, columns]: 1 if some pair is visible
  std::vector<std::uint8_t> chosen;   // the same shape: 1 if the block is chosen
  std::vector<float> scores;  // the same shape: the scores by which blocks are chosen; empty with
                              // kGiven

  std::size_t at(std::int64_t b, std::int64_t head, std::int64_t row, std::int64_t column) const {
    return static_cast<std::size_t>(((b * heads + head) * rows + row) * columns + column);
  }
  // Chosen blocks divided by visible blocks, for all heads and batches; 0 if no block is visible.
  double share() const;
};

// `given` is the array of SelectionBuffers, or null. Reads only Q and K of `inputs`. Requires:
// validate() of the problem and of the selection pass. The time grows with the number of all pairs.
HostBlocks reference(const Problem& problem, const Selection& selection, const HostInputs& inputs,
                     const std::int32_t* given = nullptr);

// The chosen blocks of one batch as a layout, in which all blocks are whole and each head is stored
// by itself. If the problem has the default positions, attention sees pattern & blocks(layout).
BlockLayout layout_of(const Problem& problem, const Selection& selection, const HostBlocks& blocks,
                      std::int64_t batch);

}  // namespace annulus::selection

#endif  // ANNULUS_SELECTION_REFERENCE_H_
