#ifndef ANNULUS_ATTENTION_TILES_ROW_GROUPS_H_
#define ANNULUS_ATTENTION_TILES_ROW_GROUPS_H_

// Tile rows of one or two runs that need no record each: in a window with global tokens, or in
// documents, most rows follow from the ones before them. They are found by the places where the
// ends of the pattern's keys pass each other (pattern/rows_alike.h): between two of them every
// number of a row's record is a linear function of the row, so a few rows tell all, and a list of a
// billion tokens takes as long as one of a thousand.

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
  std::vector<kernels::RowRuns> runs;  // their records and steps

  friend bool operator==(const RowGroups& a, const RowGroups& b) {
    return a.groups == b.groups && a.runs == b.runs;
  }
  RowSums sums() const;
  // Whether a kernel should have them in place of a record for each row: they have to be much
  // shorter, and launched nearly as well. The groups with the longest rows come first, so that long
  // rows of one may follow shorter rows of another; such rows must be next to nothing beside the
  // share of a multiprocessor.
  bool are_better() const;
};

// The groups of a classifier's rows; nothing if some row has more than two runs, or if there would
// be many groups, which is soon found out. Requires: has_runs() of the pattern (tile_runs.h).
std::optional<RowGroups> find_groups(pattern::Classifier& classifier, std::int64_t head);

// The sums over the rows of a group, of which `runs` are the records and steps.
RowSums sum_group(const kernels::RowGroup& group, const std::vector<kernels::RowRuns>& runs);
// The sums over two sets of rows.
RowSums operator+(const RowSums& a, const RowSums& b);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_TILES_ROW_GROUPS_H_
