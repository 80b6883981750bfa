#include "ring/check_schedule.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "pattern/classify.h"
#include "pattern/evaluate.h"
#include "ring/check_order.h"

namespace annulus::ring {
namespace {

using pattern::Interval;
using pattern::IntervalSet;
using Kind = Violation::Kind;

std::int64_t shard_rows(const ShardMap& shards, int rank) {
  return pattern::total_length(shards.k[static_cast<std::size_t>(rank)]);
}

// ---- Numbers

class Numbers {
 public:
  Numbers(const Schedule& schedule, const ShardMap& shards)
      : schedule_(schedule), shards_(shards) {}

  void check(ViolationReport* report) const {
    const int ranks = schedule_.rank_count();
    if (schedule_.packed.size() != schedule_.ranks.size() || ranks != shards_.ranks()) {
      report->add(Kind::kIllFormed, "{} ranks, but packed rows of {} and shards for {}", ranks,
                  schedule_.packed.size(), shards_.ranks());
      return;
    }
    for (int rank = 0; rank < ranks; ++rank) {
      check_packed(rank, report);
      const std::vector<Op>& ops = schedule_.ops_of(rank);
      for (std::size_t i = 0; i < ops.size(); ++i) {
        if (good(rank, i)) continue;
        report->add(Kind::kIllFormed, "rank {} op {}: a number is out of range", rank, i);
      }
    }
  }

 private:
  // Packed rows are rows of the shard, and each occurs at most once.
  void check_packed(int rank, ViolationReport* report) const {
    const PackedRows& packed = schedule_.packed[static_cast<std::size_t>(rank)];
    std::vector<Interval> pieces = packed.pieces();
    std::ranges::sort(pieces, {}, &Interval::begin);
    std::int64_t next = 0;
    for (const Interval& piece : pieces) {
      if (piece.empty() || piece.begin < next || piece.end > shard_rows(shards_, rank)) {
        report->add(Kind::kIllFormed, "rank {} packs rows {} to {} of {}, or packs them twice",
                    rank, piece.begin, piece.end, shard_rows(shards_, rank));
      }
      next = piece.end;
    }
  }

  bool good(int rank, std::size_t index) const {
    const std::vector<Op>& ops = schedule_.ops_of(rank);
    const Op& op = ops[index];
    bool good = op.slot >= kCallersTensors && op.slot < 2 && op.round >= kOwnKeys &&
                op.round < schedule_.rounds;
    for (const int wait : op.waits) good = good && wait >= 0 && wait < static_cast<int>(index);
    if (op.kind == Op::Kind::kExchange) {
      good = good && op.round >= 0 && (!op.sends.empty() || !op.receives.empty());
      int first = 0;
      schedule_.ranks[static_cast<std::size_t>(rank)].exchange_of(op.round, &first);
      good = good && first == static_cast<int>(index);  // at most one exchange in a round
    } else {
      good = good && op.sends.empty() && op.receives.empty();
    }
    for (const Transfer& send : op.sends) good = good && good_transfer(rank, send);
    for (const Transfer& receive : op.receives) {
      good = good && good_transfer(rank, receive) && receive.slot != kOwnRows;
    }
    return good;
  }

  bool good_transfer(int rank, const Transfer& transfer) const {
    const auto is_rank = [&](int number) { return number >= 0 && number < schedule_.rank_count(); };
    if (!is_rank(transfer.peer) || !is_rank(transfer.owner) || transfer.peer == rank) return false;
    const std::int64_t packed = schedule_.packed[static_cast<std::size_t>(transfer.owner)].count();
    return transfer.slot >= kOwnRows && transfer.slot < 2 && transfer.rows > 0 &&
           transfer.first >= 0 && transfer.first <= packed - transfer.rows && transfer.row >= 0;
  }

  const Schedule& schedule_;
  const ShardMap& shards_;
};

// ---- Rows

// The rows of an owner's shard that a message carries.
template <typename F>
void each_row_piece(const Schedule& schedule, const Transfer& transfer, F f) {
  schedule.packed[static_cast<std::size_t>(transfer.owner)].each_piece(
      {transfer.first, transfer.first + transfer.rows}, f);
}

// The rows of the shard of `owner` that at least one row of `rank` sees.
class Seen {
 public:
  Seen(const Problem& problem, const Pattern& pattern, const ShardMap& shards)
      : problem_(problem), pattern_(pattern), shards_(shards) {}

  IntervalSet of(int rank, int owner) const {
    const auto& q = shards_.q[static_cast<std::size_t>(rank)];
    const std::int64_t pairs = pattern::total_length(q) * shard_rows(shards_, owner);
    IntervalSet seen, more, both;
    const std::int64_t batches =
        std::max<std::int64_t>(1, pattern_.distinct_batches(problem_.batch));
    for (std::int64_t batch = 0; batch < batches; ++batch) {
      PatternContext context = problem_.context();
      context.batch = batch;
      more = pairs > (std::int64_t{1} << 24) ? by_rows(rank, owner, context)
                                             : by_pairs(rank, owner, context);
      pattern::unite(seen, more, &both);
      seen.swap(both);
    }
    return seen;
  }

 private:
  // Calls f(position of the first key, its row, number of keys) for the segments of a shard.
  template <typename F>
  void each_segment(int owner, F f) const {
    std::int64_t row = 0;
    for (const Segment& keys : shards_.k[static_cast<std::size_t>(owner)]) {
      f(problem_.k_position() + keys.start, row, keys.length);
      row += keys.length;
    }
  }
  std::int64_t heads() const { return pattern_.distinct_heads(problem_.heads); }

  bool any_sees(int rank, std::int64_t key, const PatternContext& context) const {
    for (std::int64_t head = 0; head < heads(); ++head) {
      for (const Segment& rows : shards_.q[static_cast<std::size_t>(rank)]) {
        const std::int64_t first = problem_.q_position() + rows.start;
        for (std::int64_t q = first; q < first + rows.length; ++q) {
          if (pattern_.visible(head, q, key, context)) return true;
        }
      }
    }
    return false;
  }
  IntervalSet by_pairs(int rank, int owner, const PatternContext& context) const {
    IntervalSet seen;
    each_segment(owner, [&](std::int64_t key, std::int64_t row, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) {
        if (any_sees(rank, key + i, context)) pattern::append(&seen, {row + i, row + i + 1});
      }
    });
    return seen;
  }
  IntervalSet by_rows(int rank, int owner, const PatternContext& context) const {
    pattern::Evaluator evaluator(pattern_, context);
    IntervalSet seen, fresh, both;
    each_segment(owner, [&](std::int64_t key, std::int64_t row, std::int64_t count) {
      IntervalSet keys;
      for (std::int64_t head = 0; head < heads(); ++head) {
        for (const Segment& rows : shards_.q[static_cast<std::size_t>(rank)]) {
          const std::int64_t first = problem_.q_position() + rows.start;
          for (std::int64_t q = first; q < first + rows.length; ++q) {
            pattern::subtract(evaluator.row(head, q, {key, key + count}), keys, &fresh);
            if (fresh.empty()) continue;
            pattern::unite(keys, fresh, &both);
            keys.swap(both);
          }
        }
      }
      for (const Interval& found : keys) {
        pattern::append(&seen, {found.begin - key + row, found.end - key + row});
      }
    });
    return seen;
  }

  const Problem& problem_;
  const Pattern& pattern_;
  const ShardMap& shards_;
};

// Compares the rows that a rank computes with, and the rows that it receives, with the rows that it
// sees.
class RowChecker {
 public:
  RowChecker(const Schedule& schedule, const Problem& problem, const ShardMap& shards)
      : schedule_(schedule),
        problem_(problem),
        shards_(shards),
        branches_(problem.pattern.branches()) {}

  void check(ViolationReport* report) const {
    for (int rank = 0; rank < schedule_.rank_count(); ++rank) {
      const RankSchedule& own = schedule_.ranks[static_cast<std::size_t>(rank)];
      std::int64_t unseen = 0;
      for (int owner = 0; owner < schedule_.rank_count(); ++owner) {
        IntervalSet all, both;
        for (std::size_t branch = 0; branch < branches_.size(); ++branch) {
          const IntervalSet seen = Seen(problem_, branches_[branch], shards_).of(rank, owner);
          check_branch(rank, owner, static_cast<int>(branch), seen, report);
          pattern::unite(all, seen, &both);
          all.swap(both);
        }
        unseen += unseen_rows(rank, owner, all, report);
      }
      if (unseen == own.unseen_rows) continue;
      report->add(Kind::kUnneeded, "rank {} receives {} rows that it does not see, not {}", rank,
                  unseen, own.unseen_rows);
    }
  }

 private:
  // Each row that is seen must be in exactly one launch of the branch. Rows that are not seen may
  // be in any number of launches: a rank whose rows see no key needs a launch that writes the empty
  // output.
  void check_branch(int rank, int owner, int branch, const IntervalSet& seen,
                    ViolationReport* report) const {
    IntervalSet computed, piece, both;
    const auto add = [&](const Interval& rows) {
      pattern::intersect(seen, {rows}, &piece);
      IntervalSet twice;
      pattern::intersect(computed, piece, &twice);
      if (!twice.empty()) {
        report->add(Kind::kPairTwice,
                    "rank {} computes with row {} of rank {} in two launches of branch {}", rank,
                    twice.front().begin, owner, branch);
      }
      pattern::unite(computed, piece, &both);
      computed.swap(both);
    };
    const RankSchedule& own = schedule_.ranks[static_cast<std::size_t>(rank)];
    for (const Op& op : own.ops) {
      if (op.kind != Op::Kind::kCompute || op.branch != branch) continue;
      if (op.round == kOwnKeys) {
        if (owner == rank && shard_rows(shards_, owner) > 0) add({0, shard_rows(shards_, owner)});
        continue;
      }
      int index = 0;
      const Op* exchange = own.exchange_of(op.round, &index);
      if (exchange == nullptr) continue;
      for (const Transfer& receive : exchange->receives) {
        if (receive.owner == owner) each_row_piece(schedule_, receive, add);
      }
    }
    IntervalSet missing;
    pattern::subtract(seen, computed, &missing);
    if (missing.empty()) return;
    report->add(
        Kind::kPairMissing,
        "rank {} sees row {} of rank {} through branch {} and computes with it in no launch", rank,
        missing.front().begin, owner, branch);
  }

  // The number of the owner's rows that the rank receives but does not see. They may only be rows
  // that it passes on, or rows of an owner whose rows it sees in very many pieces.
  std::int64_t unseen_rows(int rank, int owner, const IntervalSet& seen,
                           ViolationReport* report) const {
    const RankSchedule& own = schedule_.ranks[static_cast<std::size_t>(rank)];
    IntervalSet passed_on;
    const auto join = [](IntervalSet* set, const Interval& rows) {
      IntervalSet both;
      pattern::unite(*set, {rows}, &both);
      set->swap(both);
    };
    for (const Op& op : own.ops) {
      for (const Transfer& send : op.sends) {
        if (send.owner != owner || owner == rank) continue;
        each_row_piece(schedule_, send, [&](const Interval& rows) { join(&passed_on, rows); });
      }
    }
    IntervalSet received;
    for (const Op& op : own.ops) {
      for (const Transfer& receive : op.receives) {
        if (receive.owner != owner) continue;
        each_row_piece(schedule_, receive, [&](const Interval& rows) {
          IntervalSet twice;
          pattern::intersect(received, {rows}, &twice);
          if (!twice.empty()) {
            report->add(Kind::kUnneeded, "rank {} receives row {} of rank {} twice", rank,
                        twice.front().begin, owner);
          }
          join(&received, rows);
        });
      }
    }
    if (owner == rank && !received.empty()) {
      report->add(Kind::kUnneeded, "rank {} receives rows of its own", rank);
    }
    IntervalSet rest, useless;
    pattern::subtract(received, seen, &rest);
    if (seen.size() > kMaxPieces) return pattern::size(rest);
    pattern::subtract(rest, passed_on, &useless);
    if (!useless.empty()) {
      report->add(Kind::kUnneeded, "rank {} receives row {} of rank {} and does not see it", rank,
                  useless.front().begin, owner);
    }
    return pattern::size(rest);
  }

  const Schedule& schedule_;
  const Problem& problem_;
  const ShardMap& shards_;
  const std::vector<Pattern> branches_;
};

// ---- Sends and receives

// Checks that the messages that a rank sends to a peer in a round are the messages that the peer
// receives from it: the same number, the same rows, in the same order.
void check_matching(const Schedule& schedule, ViolationReport* report) {
  const auto side = [&](int rank, int peer, int round, bool sends) {
    std::vector<Transfer> found;
    int index = 0;
    const Op* op = schedule.ranks[static_cast<std::size_t>(rank)].exchange_of(round, &index);
    if (op == nullptr) return found;
    for (const Transfer& transfer : sends ? op->sends : op->receives) {
      if (transfer.peer == peer) found.push_back(transfer);
    }
    return found;
  };
  for (int rank = 0; rank < schedule.rank_count(); ++rank) {
    for (const Op& op : schedule.ops_of(rank)) {
      std::vector<int> checked;
      for (const std::vector<Transfer>* transfers : {&op.sends, &op.receives}) {
        const bool sends = transfers == &op.sends;
        checked.clear();
        for (const Transfer& transfer : *transfers) {
          const int peer = transfer.peer;
          if (std::ranges::find(checked, peer) != checked.end()) continue;
          checked.push_back(peer);
          const std::vector<Transfer> here = side(rank, peer, op.round, sends);
          const std::vector<Transfer> there = side(peer, rank, op.round, !sends);
          const bool matched =
              std::ranges::equal(here, there, [](const Transfer& a, const Transfer& b) {
                return a.owner == b.owner && a.first == b.first && a.rows == b.rows;
              });
          if (matched) continue;
          report->add(Kind::kUnmatched,
                      "rank {} {} {} messages {} rank {} in round {}, which {} {} or others", rank,
                      sends ? "sends" : "receives", here.size(), sends ? "to" : "from", peer,
                      op.round, sends ? "receives" : "sends", there.size());
        }
      }
    }
  }
}

// ---- Memory

void check_memory_bound(const Schedule& schedule, const ShardMap& shards, ViolationReport* report) {
  std::int64_t largest = 0;
  for (int rank = 0; rank < schedule.rank_count(); ++rank) {
    largest = std::max(largest, shard_rows(shards, rank));
  }
  for (int rank = 0; rank < schedule.rank_count(); ++rank) {
    const RankSchedule& own = schedule.ranks[static_cast<std::size_t>(rank)];
    const std::int64_t packed = schedule.packed[static_cast<std::size_t>(rank)].count();
    const std::int64_t held = packed + own.slot_rows[0] + own.slot_rows[1];
    if (held > std::max(2 * largest, packed + 4)) {
      report->add(Kind::kTooMuch, "rank {} holds {} rows, and the largest shard has {}", rank, held,
                  largest);
    }
    for (const Op& op : own.ops) {
      for (const Transfer& receive : op.receives) {
        if (receive.row + receive.rows <= own.slot_rows[static_cast<std::size_t>(receive.slot)]) {
          continue;
        }
        report->add(Kind::kTooMuch, "rank {} round {}: rows arrive beyond the {} rows of slot {}",
                    rank, op.round, own.slot_rows[static_cast<std::size_t>(receive.slot)],
                    receive.slot);
      }
    }
  }
}

// ---- State

// Checks the launches of a rank in their order. The first launch starts without a state, the last
// one writes O, and none follows it. There are at most (rounds + 1) * branches of them.
void check_state(const Schedule& schedule, const Problem& problem, const ShardMap& shards,
                 ViolationReport* report) {
  const int most = (schedule.rounds + 1) * static_cast<int>(problem.pattern.branches().size());
  for (int rank = 0; rank < schedule.rank_count(); ++rank) {
    const RankSchedule& own = schedule.ranks[static_cast<std::size_t>(rank)];
    int launches = 0;
    bool ended = false;
    for (const Op& op : own.ops) {
      if (op.kind != Op::Kind::kCompute) continue;
      if (op.first != (launches == 0) || ended) {
        report->add(Kind::kState, "rank {} round {}: launch {} {}", rank, op.round, launches,
                    ended ? "comes after the rows were finished"
                          : (op.first ? "starts without a state"
                                      : "continues a state that does not exist"));
      }
      int index = 0;
      const Op* exchange = own.exchange_of(op.round, &index);
      if (op.round == kOwnKeys
              ? op.slot != kCallersTensors
              : op.slot == kCallersTensors || exchange == nullptr || exchange->receives.empty()) {
        report->add(Kind::kNotThere, "rank {} takes {} for what round {} brings", rank,
                    op.slot == kCallersTensors ? "its own keys" : "a slot", op.round);
      }
      ended = op.last;
      ++launches;
    }
    const bool rows = pattern::total_length(shards.q[static_cast<std::size_t>(rank)]) > 0;
    if (rows && !ended) {
      report->add(Kind::kState, "rank {} never finishes its rows", rank);
    }
    if (launches > most) {
      report->add(Kind::kTooMany, "rank {} launches {} kernels in {} rounds, at most {}", rank,
                  launches, schedule.rounds, most);
    }
    // The caller's stream must wait for the rank's last exchange. Otherwise the caller could
    // overwrite its tensors or its workspace while the exchange stream still reads or writes them,
    // which is why a missing join counts as kOverwritten.
    int last_exchange = kNone;
    for (int i = 0; i < static_cast<int>(own.ops.size()); ++i) {
      if (own.ops[static_cast<std::size_t>(i)].on_exchange_stream()) last_exchange = i;
    }
    const bool joined = last_exchange == kNone || std::ranges::any_of(own.ops, [&](const Op& op) {
                          return op.kind == Op::Kind::kJoin &&
                                 std::ranges::find(op.waits, last_exchange) != op.waits.end();
                        });
    if (!joined) report->add(Kind::kOverwritten, "rank {} ends before its last exchange", rank);
  }
}

}  // namespace

std::vector<Violation> check_schedule(const Schedule& schedule, const Problem& problem,
                                      const ShardMap& shards) {
  ViolationReport report;
  Numbers(schedule, shards).check(&report);
  if (report.has(Kind::kIllFormed)) return report.take();
  RowChecker(schedule, problem, shards).check(&report);
  check_matching(schedule, &report);
  check_memory_bound(schedule, shards, &report);
  check_state(schedule, problem, shards, &report);
  check_order(schedule, &report);
  return report.take();
}

}  // namespace annulus::ring
