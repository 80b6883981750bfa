#include "attention/tiles/tile_runs.h"

#include <algorithm>

#include "pattern/node.h"

namespace annulus::attention {
namespace {

using pattern::BlockRun;

// Whether the keys of some leaf are scattered over a row. The keys of a leaf of several levels are.
bool is_scattered(const pattern::Node& node) {
  if (node.kind == pattern::Kind::kHierarchical) return true;
  if (node.kind == pattern::Kind::kLeaf) {
    return pattern::leaves::structure_of(node.leaf).is_scattered;
  }
  return std::ranges::any_of(
      node.children, [](const pattern::NodePointer& child) { return is_scattered(*child); });
}

// Appends tiles [begin, end) of a row, whose columns begin at `column`, as runs; each run has one
// class. The full_count tiles from full_begin on are full.
void add_runs(int begin, int end, int column, int full_begin, int full_count,
              std::vector<BlockRun>* runs) {
  const auto add = [&](int from, int to, bool partial) {
    if (from < to) add_run({column + from - begin, column + to - begin, partial}, runs);
  };
  if (full_count == 0) return add(begin, end, true);
  add(begin, full_begin, true);
  add(full_begin, full_begin + full_count, false);
  add(full_begin + full_count, end, true);
}

}  // namespace

bool has_runs(const Pattern& pattern) { return !is_scattered(pattern.node()); }

std::optional<kernels::RowRuns> row_of_runs(const std::vector<BlockRun>& runs) {
  kernels::RowRuns row{};
  // A run of the record is partial tiles, then full tiles, then partial tiles. The classifier's run
  // `run` continues it if its columns come next and its class comes next in that order; otherwise
  // it begins the record's next run.
  int used = 0;  // runs that the record has so far
  std::int64_t end = -1;
  bool closed = false;  // the current run has all of its full tiles
  for (const BlockRun& run : runs) {
    const bool goes_on = used > 0 && run.begin == end && (run.partial || !closed);
    if (!goes_on) {
      if (used == 2) return std::nullopt;
      if (used == 1) row.split = row.count;
      row.shift[used++] = static_cast<int>(run.begin) - row.count;
      closed = false;
    }
    const auto tiles = static_cast<int>(run.end - run.begin);
    if (!run.partial) {
      row.full_begin[used - 1] = row.count;
      row.full_count[used - 1] = tiles;
      closed = true;
    }
    row.count += tiles;
    end = run.end;
  }
  if (used < 2) row.split = row.count;
  return row;
}

std::vector<BlockRun> runs_of_row(const kernels::RowRuns& row) {
  std::vector<BlockRun> runs;
  add_runs(0, row.split, row.shift[0], row.full_begin[0], row.full_count[0], &runs);
  add_runs(row.split, row.count, row.split + row.shift[1], row.full_begin[1], row.full_count[1],
           &runs);
  return runs;
}

std::vector<BlockRun> runs_of_row(const kernels::RowRun& row) {
  std::vector<BlockRun> runs;
  add_runs(0, row.count, row.first, row.full_begin, row.full_count, &runs);
  return runs;
}

void add_run(const BlockRun& run, std::vector<BlockRun>* runs) {
  if (!runs->empty() && runs->back().end == run.begin && runs->back().partial == run.partial) {
    runs->back().end = run.end;
  } else {
    runs->push_back(run);
  }
}

}  // namespace annulus::attention
