#include "ring/check_tiles.h"

#include <algorithm>

namespace annulus::ring {
namespace {

using Kind = Violation::Kind;

std::vector<std::int64_t> positions_of(const std::vector<Segment>& shard, std::int64_t first) {
  std::vector<std::int64_t> positions;
  for (const Segment& segment : shard) {
    for (std::int64_t row = 0; row < segment.length; ++row) {
      positions.push_back(first + segment.start + row);
    }
  }
  return positions;
}

// The tiles of `tile` rows of a shard: the rows of each. With two segments the kernel's tiles begin
// anew with the second one; otherwise they do not look at segments.
std::vector<pattern::Interval> tiles_of(const std::vector<Segment>& shard, std::int64_t tile,
                                        bool by_segment) {
  std::vector<pattern::Interval> tiles;
  std::int64_t row = 0, rows = 0;
  for (const Segment& segment : shard) rows += segment.length;
  for (const Segment& segment : shard) {
    const std::int64_t end = by_segment ? row + segment.length : rows;
    for (; row < end; row += tile) tiles.push_back({row, std::min(row + tile, end)});
    row = end;
  }
  return tiles;
}

// Whether the tiles of the launch that has the keys of `owner` are those of single segments.
bool goes_by_segment(const RankPlan& rank, const std::vector<const Op*>& computes, int owner,
                     int branch) {
  for (std::size_t launch = 0; launch < computes.size(); ++launch) {
    if (computes[launch]->owner == owner && computes[launch]->branch == branch) {
      return rank.launches[launch].features.positions == kernels::Positions::kTwoSegments;
    }
  }
  return false;
}

// How often a tile is listed by the launches of a rank that have the keys of `owner`, and whether
// one of them lists it as full.
struct Listed {
  int times = 0;
  bool full = false;
};

Listed find_tile(const RankPlan& rank, const std::vector<const Op*>& computes, int owner,
                 int branch, std::int64_t batch, std::int64_t head, std::int64_t row_tile,
                 std::int64_t column_tile) {
  Listed listed;
  for (std::size_t launch = 0; launch < computes.size(); ++launch) {
    if (computes[launch]->owner != owner || computes[launch]->branch != branch) continue;
    const attention::TileList& tiles = *rank.launches[launch].tiles;
    for (const pattern::BlockRun& run : tiles.row_runs(tiles.list_of(head, batch), row_tile)) {
      if (column_tile < run.begin || column_tile >= run.end) continue;
      ++listed.times;
      listed.full = listed.full || !run.partial;
    }
  }
  return listed;
}

void check_launches(const PlannedRing& ring, int rank, const std::vector<const Op*>& computes,
                    ViolationReport* report) {
  const auto& launches = ring.ranks[static_cast<std::size_t>(rank)].launches;
  for (std::size_t at = 0; at < launches.size(); ++at) {
    if (launches[at].problem.carry_in == (at > 0) &&
        launches[at].problem.carry_out == (at + 1 < launches.size())) {
      continue;
    }
    report->add(Kind::kState, "launch {} of {} of rank {} {} a state in and {} one out", at,
                launches.size(), rank, launches[at].problem.carry_in ? "takes" : "does not take",
                launches[at].problem.carry_out ? "gives" : "does not give");
  }
  for (std::size_t at = 0; at < launches.size(); ++at) {
    if (launches[at].config == ring.choice.config) continue;
    report->add(Kind::kIllFormed, "launch {} of rank {} runs '{}', but the ring '{}'", at, rank,
                attention::to_string(launches[at].config),
                attention::to_string(ring.choice.config));
  }
  if (launches.size() != computes.size()) {
    report->add(Kind::kIllFormed, "rank {} has {} launches for {} steps that compute", rank,
                launches.size(), computes.size());
  }
}

// Asks the pattern about every pair of a row of `rank` and a key of `owner`, and compares each tile
// with what the launches list.
void check_pair_of_ranks(const PlannedRing& ring, int rank, int owner, int branch,
                         std::int64_t batch, const std::vector<const Op*>& computes,
                         ViolationReport* report) {
  const auto q =
      positions_of(ring.shards.q[static_cast<std::size_t>(rank)], ring.problem.q_position());
  const auto k =
      positions_of(ring.shards.k[static_cast<std::size_t>(owner)], ring.problem.k_position());
  const RankPlan& plan = ring.ranks[static_cast<std::size_t>(rank)];
  const bool by_segment = goes_by_segment(plan, computes, owner, branch);
  const auto row_tiles = tiles_of(ring.shards.q[static_cast<std::size_t>(rank)],
                                  ring.choice.config.tile_rows, by_segment);
  const auto column_tiles = tiles_of(ring.shards.k[static_cast<std::size_t>(owner)],
                                     ring.choice.config.tile_columns, by_segment);
  PatternContext context = ring.problem.context();
  context.batch = batch;
  const Pattern pattern = ring.problem.pattern.branches()[static_cast<std::size_t>(branch)];
  for (std::int64_t head = 0; head < ring.problem.heads; ++head) {
    for (std::size_t row_tile = 0; row_tile < row_tiles.size(); ++row_tile) {
      for (std::size_t column_tile = 0; column_tile < column_tiles.size(); ++column_tile) {
        const pattern::Interval rows = row_tiles[row_tile], columns = column_tiles[column_tile];
        bool any = false;
        bool all = true;
        for (std::int64_t i = rows.begin; i < rows.end; ++i) {
          for (std::int64_t j = columns.begin; j < columns.end; ++j) {
            const bool visible = pattern.visible(head, q[static_cast<std::size_t>(i)],
                                                 k[static_cast<std::size_t>(j)], context);
            any = any || visible;
            all = all && visible;
          }
        }
        const Listed listed =
            find_tile(plan, computes, owner, branch, batch, head,
                      static_cast<std::int64_t>(row_tile), static_cast<std::int64_t>(column_tile));
        // A tile without a visible pair may be listed any number of times: as a partial tile it
        // adds nothing to the answer, and as a full one it is reported below.
        if (any && listed.times != 1) {
          report->add(listed.times == 0 ? Kind::kPairMissing : Kind::kPairTwice,
                      "batch {}, head {}: rows from {} of rank {} see keys from {} of rank {}, and "
                      "{} launches have that tile",
                      batch, head, rows.begin, rank, columns.begin, owner, listed.times);
        }
        if (!all && listed.full) {
          report->add(Kind::kPairHidden,
                      "batch {}, head {}: rows from {} of rank {} do not see all keys from {} of "
                      "rank {}, but a launch takes that tile for full",
                      batch, head, rows.begin, rank, columns.begin, owner);
        }
      }
    }
  }
}

}  // namespace

std::vector<Violation> check_tiles(const PlannedRing& ring) {
  ViolationReport report;
  for (int rank = 0; rank < ring.schedule.ranks; ++rank) {
    std::vector<const Op*> computes;
    for (const Op& op : ring.schedule.ops[static_cast<std::size_t>(rank)]) {
      if (op.kind == Op::Kind::kCompute) computes.push_back(&op);
    }
    check_launches(ring, rank, computes, &report);
    if (report.has(Kind::kIllFormed)) continue;
    const auto branches = static_cast<int>(ring.problem.pattern.branches().size());
    for (int owner = 0; owner < ring.schedule.ranks; ++owner) {
      for (int branch = 0; branch < branches; ++branch) {
        const std::int64_t batches = ring.problem.pattern.distinct_batches(ring.problem.batch);
        for (std::int64_t batch = 0; batch < batches; ++batch) {
          check_pair_of_ranks(ring, rank, owner, branch, batch, computes, &report);
        }
      }
    }
  }
  return report.take();
}

}  // namespace annulus::ring
