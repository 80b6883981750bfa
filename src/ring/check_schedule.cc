#include "ring/check_schedule.h"

#include <algorithm>

#include "pattern/classify.h"
#include "ring/check_order.h"

namespace annulus::ring {
namespace {

using Kind = Violation::Kind;

// ---- Numbers

void check_numbers(const Schedule& schedule, ViolationReport* report) {
  const int ranks = schedule.ranks;
  const auto rank_or_none = [&](int rank) { return rank >= kNone && rank < ranks; };
  if (schedule.ops.size() != static_cast<std::size_t>(ranks) ||
      schedule.shard_bytes.size() != static_cast<std::size_t>(ranks)) {
    report->add(Kind::kIllFormed, "{} ranks, but ops for {} and shards for {}", ranks,
                schedule.ops.size(), schedule.shard_bytes.size());
    return;
  }
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<Op>& ops = schedule.of_rank(rank);
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Op& op = ops[i];
      bool good = op.step >= 0 && op.step < ranks && rank_or_none(op.owner) &&
                  rank_or_none(op.send_to) && rank_or_none(op.send_owner) &&
                  rank_or_none(op.receive_from) && rank_or_none(op.receive_owner);
      good = good && op.buffer >= kCallersTensors && op.buffer < 2;
      good = good && op.send_buffer >= 0 && op.send_buffer < 2;
      good = good && op.receive_buffer >= 0 && op.receive_buffer < 2;
      for (const int wait : op.waits) good = good && wait >= 0 && wait < static_cast<int>(i);
      if (op.kind == Op::Kind::kCompute || op.kind == Op::Kind::kPack) {
        good = good && op.owner != kNone;
      }
      if (op.kind == Op::Kind::kPack) good = good && op.buffer >= 0;
      if (op.send_to != kNone) good = good && op.send_owner != kNone;
      if (op.receive_from != kNone) good = good && op.receive_owner != kNone;
      if (!good) report->add(Kind::kIllFormed, "rank {} op {}: a number is out of range", rank, i);
    }
  }
}

// ---- Pairs

// Whether any row of `rank` sees any key of `owner`.
bool sees(const Problem& problem, const Pattern& pattern, std::int64_t batch,
          const ShardMap& shards, int rank, int owner) {
  const auto& q = shards.q[static_cast<std::size_t>(rank)];
  const auto& k = shards.k[static_cast<std::size_t>(owner)];
  PatternContext context = problem.context();
  context.batch = batch;
  for (std::int64_t head = 0; head < pattern.distinct_heads(problem.heads); ++head) {
    for (const Segment& rows : q) {
      for (const Segment& keys : k) {
        const std::int64_t first_q = problem.q_position() + rows.start;
        const std::int64_t first_k = problem.k_position() + keys.start;
        // Above 2^24 pairs, asking each would take seconds; visible_pairs() counts them from
        // intervals of keys.
        if (rows.length * keys.length > (std::int64_t{1} << 24)) {
          if (pattern::visible_pairs(pattern, head, {rows.length, keys.length, first_q, first_k},
                                     context) > 0) {
            return true;
          }
          continue;
        }
        for (std::int64_t i = 0; i < rows.length; ++i) {
          for (std::int64_t j = 0; j < keys.length; ++j) {
            if (pattern.visible(head, first_q + i, first_k + j, context)) return true;
          }
        }
      }
    }
  }
  return false;
}

bool any_batch_sees(const Problem& problem, const Pattern& pattern, const ShardMap& shards,
                    int rank, int owner) {
  const std::int64_t batches = std::max<std::int64_t>(1, pattern.distinct_batches(problem.batch));
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    if (sees(problem, pattern, batch, shards, rank, owner)) return true;
  }
  return false;
}

// Checks that every rank launches exactly once for each shard and branch in which its rows see a
// key. A launch for a shard that is not seen is allowed: rows that see no key need one launch,
// which writes their empty answer.
void check_pairs(const Schedule& schedule, const Problem& problem, const ShardMap& shards,
                 ViolationReport* report) {
  const std::vector<Pattern> branches = problem.pattern.branches();
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    for (int branch = 0; branch < static_cast<int>(branches.size()); ++branch) {
      std::vector<int> computed(static_cast<std::size_t>(schedule.ranks), 0);
      for (const Op& op : schedule.of_rank(rank)) {
        if (op.kind != Op::Kind::kCompute || op.branch != branch) continue;
        ++computed[static_cast<std::size_t>(op.owner)];
      }
      for (int owner = 0; owner < schedule.ranks; ++owner) {
        const int times = computed[static_cast<std::size_t>(owner)];
        if (times == 1) continue;
        if (!any_batch_sees(problem, branches[static_cast<std::size_t>(branch)], shards, rank,
                            owner)) {
          continue;
        }
        report->add(
            times == 0 ? Kind::kPairMissing : Kind::kPairTwice,
            "rank {} sees keys of rank {} through branch {} and computes with them {} times", rank,
            owner, branch, times);
      }
    }
  }
}

// ---- Sends and receives

// Checks that each send meets a receive of the same keys in the same step on the other rank, and
// each receive such a send.
void check_matching(const Schedule& schedule, ViolationReport* report) {
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    for (const Op& op : schedule.of_rank(rank)) {
      for (const bool sends : {true, false}) {
        const int peer = sends ? op.send_to : op.receive_from;
        const int owner = sends ? op.send_owner : op.receive_owner;
        if (peer == kNone) continue;
        int index = 0;
        const Op* const other = exchange_of(schedule, peer, op.step, &index);
        const bool matched = other != nullptr &&
                             (sends ? other->receive_from == rank && other->receive_owner == owner
                                    : other->send_to == rank && other->send_owner == owner);
        if (matched) continue;
        report->add(Kind::kUnmatched,
                    "rank {} step {} {} keys of rank {} {} rank {}, which does not {} them then",
                    rank, op.step, sends ? "sends" : "receives", owner, sends ? "to" : "from", peer,
                    sends ? "receive" : "send");
      }
    }
  }
}

// ---- State

// Checks a rank's launches in their order: the first one starts from nothing, the last one writes
// O, none comes behind it, and there are at most as many as ranks times branches.
void check_state(const Schedule& schedule, const Problem& problem, const ShardMap& shards,
                 ViolationReport* report) {
  const int most = schedule.ranks * static_cast<int>(problem.pattern.branches().size());
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    int launches = 0;
    bool ended = false;
    for (const Op& op : schedule.of_rank(rank)) {
      if (op.kind != Op::Kind::kCompute) continue;
      if (op.first != (launches == 0) || ended) {
        report->add(Kind::kState, "rank {} step {}: launch {} {}", rank, op.step, launches,
                    ended ? "comes after the rows were finished"
                          : (op.first ? "starts from nothing" : "carries on from nothing"));
      }
      if (op.buffer == kCallersTensors && op.owner != rank) {
        report->add(Kind::kNotThere, "rank {} step {} takes its own keys for those of rank {}",
                    rank, op.step, op.owner);
      }
      ended = op.last;
      ++launches;
    }
    const bool rows = pattern::total_length(shards.q[static_cast<std::size_t>(rank)]) > 0;
    if (rows && !ended) {
      report->add(Kind::kState, "rank {} never finishes its rows", rank);
    }
    if (launches > most) {
      report->add(Kind::kTooMany, "rank {} launches {} kernels in a ring of {}, at most {}", rank,
                  launches, schedule.ranks, most);
    }
    // The caller's stream must wait for the rank's last exchange. Otherwise the caller could
    // overwrite its tensors or its workspace while the exchange stream still reads or writes them,
    // which is why a missing join counts as kOverwritten.
    const std::vector<Op>& ops = schedule.of_rank(rank);
    int last_exchange = kNone;
    for (int i = 0; i < static_cast<int>(ops.size()); ++i) {
      if (ops[static_cast<std::size_t>(i)].on_exchange_stream()) last_exchange = i;
    }
    const bool joined =
        last_exchange == kNone || std::any_of(ops.begin(), ops.end(), [&](const Op& op) {
          return op.kind == Op::Kind::kJoin &&
                 std::find(op.waits.begin(), op.waits.end(), last_exchange) != op.waits.end();
        });
    if (!joined) report->add(Kind::kOverwritten, "rank {} ends before its last exchange", rank);
  }
}

}  // namespace

std::vector<Violation> check_schedule(const Schedule& schedule, const Problem& problem,
                                      const ShardMap& shards) {
  ViolationReport report;
  check_numbers(schedule, &report);
  if (report.has(Kind::kIllFormed)) return report.take();
  check_pairs(schedule, problem, shards, &report);
  check_matching(schedule, &report);
  check_state(schedule, problem, shards, &report);
  check_order(schedule, &report);
  return report.take();
}

}  // namespace annulus::ring
