#include "attention/oracle/taint.h"

#include <algorithm>
#include <cmath>

#include "attention/oracle/host_rows.h"
#include "attention/tiles/tile_grid.h"
#include "attention/tiles/visible_keys.h"
#include "base/fail.h"
#include "base/work.h"

namespace annulus::attention {
namespace {

// Marks the groups of these rows of one (batch, head) that hold a value or a scale that is not
// finite; row i is in group i / rows_together. Returns whether any group is marked.
bool mark(const HostRows& from, const pattern::Interval& rows, std::int64_t dim,
          std::int64_t rows_together, std::uint8_t* groups) {
  bool any = false;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    bool finite = std::isfinite(from.scale(row));
    for (std::int64_t d = 0; finite && d < dim; ++d) finite = std::isfinite(from.element(row, d));
    if (finite) continue;
    groups[row / rows_together] = 1;
    any = true;
  }
  return any;
}

}  // namespace

std::vector<std::uint8_t> rows_reached(const Problem& problem, const HostInputs& inputs,
                                       const TileList& tiles) {
  if (problem.seq_q == 0) return {};  // no rows, whatever the number of heads
  std::vector<std::uint8_t> reached(
      static_cast<std::size_t>(problem.batch * problem.heads * problem.seq_q));
  // A NaN in a query reaches the query's own row. A NaN in a key or value reaches every row of each
  // tile row that reads its tile, whether the row sees it or not. Keys before the first and after
  // the last key that any row sees are never read.
  const pattern::Interval keys = visible_keys(problem, placement_of(problem));
  bool any = false;
  std::vector<std::uint8_t> columns;
  for (std::int64_t bh = 0; bh < problem.batch * problem.heads; ++bh) {
    const std::int64_t batch = bh / problem.heads;
    const std::int64_t head = bh % problem.heads;
    const std::int64_t kv_head = head / (problem.heads / problem.kv_heads);
    std::uint8_t* rows = reached.data() + bh * problem.seq_q;
    any |= mark(q_rows(problem, inputs, batch, head), {0, problem.seq_q}, problem.dim_qk, 1, rows);
    columns.assign(static_cast<std::size_t>(tiles.column_tiles), 0);
    bool in_keys = mark(k_rows(problem, inputs, batch, kv_head), keys, problem.dim_qk,
                        tiles.tile_columns, columns.data());
    in_keys |= mark(v_rows(problem, inputs, batch, kv_head), keys, problem.dim_v,
                    tiles.tile_columns, columns.data());
    if (!in_keys) continue;
    any = true;
    for (std::int64_t row_tile = 0; row_tile < tiles.row_tiles; ++row_tile) {
      const bool reads = std::ranges::any_of(
          tiles.row_runs(tiles.list_of(head, batch), row_tile), [&](const pattern::BlockRun& run) {
            return std::any_of(columns.begin() + run.begin, columns.begin() + run.end,
                               [](std::uint8_t bad) { return bad != 0; });
          });
      if (!reads) continue;
      const std::int64_t first = row_tile * tiles.tile_rows;
      std::fill(rows + first, rows + std::min(first + tiles.tile_rows, problem.seq_q),
                std::uint8_t{1});
    }
  }
  if (!any) reached.clear();
  return reached;
}

}  // namespace annulus::attention

namespace annulus::inline v0 {

std::vector<std::uint8_t> reached_rows(const Problem& problem, const HostInputs& inputs,
                                       std::int64_t tile_rows, std::int64_t tile_columns) {
  const base::Work work({}, "finding the rows that a NaN reaches");
  validate(problem);
  attention::check_inputs(problem, inputs);
  const auto is_tile = [](std::int64_t size) { return size > 0 && size % 16 == 0 && size <= 1024; };
  if (!is_tile(tile_rows) || !is_tile(tile_columns)) {
    base::fail(ErrorCode::kInvalidArgument,
               "tiles of {} x {}: those of a plan are multiples of 16 up to 1024 (PlanInfo)",
               tile_rows, tile_columns);
  }
  return attention::rows_reached(
      problem, inputs,
      attention::make_plan_tiles(problem, attention::placement_of(problem), tile_rows, tile_columns,
                                 nullptr));
}

}  // namespace annulus::inline v0
