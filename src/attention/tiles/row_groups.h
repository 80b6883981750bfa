#ifndef ANNULUS_ATTENTION_TILES_ROW_GROUPS_H_
#define ANNULUS_ATTENTION_TILES_ROW_GROUPS_H_

// Groups of tile rows of one or two runs, which need no record for each row. In a window with
// global tokens, or in documents, most rows follow from the rows before them. Groups end at the
// rows where ends of the pattern's keys pass each other (pattern/rows_alike.h). Between two such
// rows every number of a row's record is a linear function of the row, so a few rows determine all.
// A list of a billion tokens takes as long as a list of a thousand.

#include <cstdint>
#include <optional>
#include <vector>

#include "params/tile_order_params.h"
#include "pattern/classify.h"

namespace annulus::attention {

struct RowSums {
  std::int64_t full_tiles = 0;
  std::int64_t partial_tiles = 0;
  std::int64_t longest_row = 0;
  std::int64_t shortest_row = 0;
  std::int64_t empty_rows = 0;
  std::int64_t tiles() const { return full_tiles + partial_tiles; }
};

// The rows of a list as groups, in launch order.
struct RowGroups {
  std::vector<kernels::RowGroup> groups;
  std::vector<kernels::RowRuns> runs;  // their records, and the steps from one term to the next

  friend bool operator==(const RowGroups& a, const RowGroups& b) {
    return a.groups == b.groups && a.runs == b.runs;
  }
  RowSums sums() const;
  // Whether a kernel should read groups in place of a record for each row. The groups have to take
  // much less memory, and their launch order has to be nearly as good. The groups with the longest
  // rows come first, so long rows of one group may follow shorter rows of another. Such rows must
  // be very short compared with the work of a multiprocessor.
  bool are_better() const;
};

// The groups of a classifier's rows; nullopt if some row has more than two runs, or if there would
// be many groups, which the search finds early. Requires: has_runs() of the pattern (tile_runs.h).
std::optional<RowGroups> find_groups(pattern::Classifier& classifier, std::int64_t head);

// The sums over the rows of a group, whose records and steps are in `runs`.
RowSums sum_group(const kernels::RowGroup& group, const std::vector<kernels::RowRuns>& runs);
// Adds the sums over two sets of rows.
RowSums operator+(const RowSums& a, const RowSums& b);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_TILES_ROW_GROUPS_H_
