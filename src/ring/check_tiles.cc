#include "ring/check_tiles.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace annulus::ring {
namespace {

using Kind = Violation::Kind;

// The rows of a tensor: the position of each row, and the rows at which segments begin.
struct Rows {
  std::vector<std::int64_t> positions;
  // rows whose position does not follow the position of the row before
  std::vector<std::int64_t> segments;

  void add(std::int64_t position) {
    if (positions.empty() || positions.back() + 1 != position) {
      segments.push_back(std::ssize(positions));
    }
    positions.push_back(position);
  }
};

std::vector<std::int64_t> positions_of(const std::vector<Segment>& shard, std::int64_t first) {
  std::vector<std::int64_t> positions;
  for (const Segment& segment : shard) {
    for (std::int64_t row = 0; row < segment.length; ++row) {
      positions.push_back(first + segment.start + row);
    }
  }
  return positions;
}

Rows rows_of_queries(const PlannedRing& ring, int rank) {
  Rows rows;
  for (const std::int64_t position : positions_of(
           ring.world.shards.q[static_cast<std::size_t>(rank)], ring.world.problem.q_position())) {
    rows.add(position);
  }
  return rows;
}

// The keys of a launch: the rank's own keys, or all rows that arrive in the round according to the
// rank's schedule, in their order in the slot.
Rows rows_of_keys(const PlannedRing& ring, int rank, int round) {
  const auto shard = [&](int owner) {
    return positions_of(ring.world.shards.k[static_cast<std::size_t>(owner)],
                        ring.world.problem.k_position());
  };
  Rows rows;
  if (round == kOwnKeys) {
    for (const std::int64_t position : shard(rank)) rows.add(position);
    return rows;
  }
  int index = 0;
  const Op* exchange =
      ring.ranks[static_cast<std::size_t>(rank)].schedule.exchange_of(round, &index);
  if (exchange == nullptr) return rows;
  std::vector<Transfer> receives = exchange->receives;
  std::ranges::sort(receives, {}, &Transfer::row);
  for (const Transfer& receive : receives) {
    const std::vector<std::int64_t> whole = shard(receive.owner);
    std::int64_t place = 0;  // an index among the owner's packed rows
    for (const pattern::Interval& piece :
         ring.ranks[static_cast<std::size_t>(receive.owner)].packed.pieces()) {
      for (std::int64_t row = piece.begin; row < piece.end; ++row, ++place) {
        if (place < receive.first || place >= receive.first + receive.rows) continue;
        rows.add(whole[static_cast<std::size_t>(row)]);
      }
    }
  }
  return rows;
}

// The rows of each tile of `tile` rows. If there are two segments, the kernel starts a new tile at
// the second segment. Otherwise its tiles do not depend on segments.
std::vector<pattern::Interval> tiles_of(const Rows& rows, std::int64_t tile, bool by_segment) {
  std::vector<std::int64_t> begins = by_segment ? rows.segments : std::vector<std::int64_t>{0};
  begins.push_back(std::ssize(rows.positions));
  std::vector<pattern::Interval> tiles;
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
    for (std::int64_t row = begins[i]; row < begins[i + 1]; row += tile) {
      tiles.push_back({row, std::min(row + tile, begins[i + 1])});
    }
  }
  return tiles;
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

// The keys that the rows of a rank see through one branch, for one head of one batch.
struct View {
  const PlannedRing& ring;
  const Pattern& pattern;
  int rank = 0;
  std::int64_t head = 0;
  PatternContext context;

  bool visible(std::int64_t q, std::int64_t k) const {
    return pattern.visible(head, q, k, context);
  }
};

// Compares each tile of a launch with the launch's list.
void check_launch(const View& view, const attention::LaunchPlan& launch, int round,
                  ViolationReport* report) {
  const Rows q = rows_of_queries(view.ring, view.rank);
  const Rows k = rows_of_keys(view.ring, view.rank, round);
  const bool by_segment = launch.features.positions == kernels::Positions::kTwoSegments;
  const auto row_tiles = tiles_of(q, view.ring.choice.config.tile_rows, by_segment);
  const auto column_tiles = tiles_of(k, view.ring.choice.config.tile_columns, by_segment);
  const attention::TileList& tiles = *launch.tiles;
  for (std::size_t row_tile = 0; row_tile < row_tiles.size(); ++row_tile) {
    const std::vector<pattern::BlockRun> runs = tiles.row_runs(
        tiles.list_of(view.head, view.context.batch), static_cast<std::int64_t>(row_tile));
    for (std::size_t column_tile = 0; column_tile < column_tiles.size(); ++column_tile) {
      const pattern::Interval rows = row_tiles[row_tile], columns = column_tiles[column_tile];
      bool any = false;
      bool all = true;
      for (std::int64_t i = rows.begin; i < rows.end; ++i) {
        for (std::int64_t j = columns.begin; j < columns.end; ++j) {
          const bool visible = view.visible(q.positions[static_cast<std::size_t>(i)],
                                            k.positions[static_cast<std::size_t>(j)]);
          any = any || visible;
          all = all && visible;
        }
      }
      int times = 0;
      bool full = false;
      for (const pattern::BlockRun& run : runs) {
        const auto column = static_cast<std::int64_t>(column_tile);
        if (column < run.begin || column >= run.end) continue;
        ++times;
        full = full || !run.partial;
      }
      // A tile without a visible pair may be listed any number of times. As a partial tile it adds
      // nothing to the output, and as a full tile it is reported below.
      if (any && times != 1) {
        report->add(
            times == 0 ? Kind::kPairMissing : Kind::kPairTwice,
            "batch {}, head {}: rows from {} of rank {} see keys from {} of round {}, which "
            "lists that tile {} times",
            view.context.batch, view.head, rows.begin, view.rank, columns.begin, round, times);
      }
      if (!all && full) {
        report->add(Kind::kPairHidden,
                    "batch {}, head {}: rows from {} of rank {} do not see all keys from {} of "
                    "round {}, but a launch takes that tile for full",
                    view.context.batch, view.head, rows.begin, view.rank, columns.begin, round);
      }
    }
  }
}

// Checks that each key that a row sees is in one launch of the branch.
void check_keys(const View& view, const std::vector<const Op*>& computes, int branch,
                ViolationReport* report) {
  std::map<std::int64_t, int> launched;
  for (const Op* op : computes) {
    if (op->branch != branch) continue;
    for (const std::int64_t key : rows_of_keys(view.ring, view.rank, op->round).positions) {
      ++launched[key];
    }
  }
  const Rows q = rows_of_queries(view.ring, view.rank);
  const Problem& problem = view.ring.world.problem;
  for (std::int64_t key = problem.k_position(); key < problem.k_position() + problem.seq_k; ++key) {
    const auto at = launched.find(key);
    const int times = at == launched.end() ? 0 : at->second;
    if (times == 1) continue;
    if (!std::ranges::any_of(q.positions,
                             [&](std::int64_t row) { return view.visible(row, key); })) {
      continue;
    }
    report->add(times == 0 ? Kind::kPairMissing : Kind::kPairTwice,
                "batch {}, head {}: rank {} sees key {}, which {} launches of branch {} have",
                view.context.batch, view.head, view.rank, key, times, branch);
  }
}

}  // namespace

std::vector<Violation> check_tiles(const PlannedRing& ring) {
  ViolationReport report;
  const Problem& problem = ring.world.problem;
  const std::vector<Pattern> branches = problem.pattern.branches();
  for (int rank = 0; rank < ring.world.ranks(); ++rank) {
    const RankPlan& plan = ring.ranks[static_cast<std::size_t>(rank)];
    std::vector<const Op*> computes;
    for (const Op& op : plan.schedule.ops) {
      if (op.kind == Op::Kind::kCompute) computes.push_back(&op);
    }
    check_launches(ring, rank, computes, &report);
    if (report.has(Kind::kIllFormed)) continue;
    for (std::size_t branch = 0; branch < branches.size(); ++branch) {
      const std::int64_t batches = problem.pattern.distinct_batches(problem.batch);
      for (std::int64_t batch = 0; batch < batches; ++batch) {
        for (std::int64_t head = 0; head < problem.heads; ++head) {
          View view = {ring, branches[branch], rank, head, problem.context()};
          view.context.batch = batch;
          check_keys(view, computes, static_cast<int>(branch), &report);
          for (std::size_t launch = 0; launch < computes.size(); ++launch) {
            if (computes[launch]->branch != static_cast<int>(branch)) continue;
            check_launch(view, plan.launches[launch], computes[launch]->round, &report);
          }
        }
      }
    }
  }
  return report.take();
}

}  // namespace annulus::ring
