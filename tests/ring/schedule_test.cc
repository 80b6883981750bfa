// Shards, needs and schedules, without a device; and a checker that finds what is planted.

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "annulus/error.h"
#include "base/random.h"
#include "ring/agreement.h"
#include "ring/check_schedule.h"
#include "support/options.h"
#include "support/ring_case.h"

namespace annulus::ring {
namespace {

using base::Random;

std::vector<std::int64_t> rows_of(const std::vector<std::vector<Segment>>& shards) {
  std::vector<std::int64_t> rows;
  for (const auto& shard : shards) rows.push_back(pattern::total_length(shard));
  return rows;
}

std::int64_t total(const std::vector<std::vector<Segment>>& shards) {
  const std::vector<std::int64_t> rows = rows_of(shards);
  return std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
}

Schedule schedule_of(const Problem& problem, const ShardMap& shards) {
  std::vector<std::int64_t> bytes;
  for (const std::int64_t rows : rows_of(shards.k)) {
    bytes.push_back(packed_shard(problem, rows).bytes);
  }
  return make_schedule(find_needs(problem, shards), rows_of(shards.q), bytes);
}

std::string text_of(const std::vector<Violation>& violations) {
  std::string text;
  for (const Violation& violation : violations) {
    text += std::string(to_string(violation.kind)) + ": " + violation.text + "\n";
  }
  return text;
}

bool has(const std::vector<Violation>& violations, Violation::Kind kind) {
  return std::any_of(violations.begin(), violations.end(),
                     [&](const Violation& violation) { return violation.kind == kind; });
}

Problem problem_of(std::int64_t seq, const Pattern& pattern) {
  Problem problem;
  problem.seq_q = problem.seq_k = seq;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = pattern;
  return problem;
}

TEST_CASE("shards hold every row once, as evenly as their edges allow") {
  for (const Sharding sharding : {Sharding::kContiguous, Sharding::kZigzag}) {
    for (int ranks = 1; ranks <= 9; ++ranks) {
      for (const std::int64_t seq : {0, 1, 2, 7, 64, 100, 129, 1000}) {
        for (const std::int64_t multiple : {0, 1, 3, 64}) {
          Problem problem = problem_of(seq, dense());
          problem.seq_q = seq / 2;
          const ShardMap shards = make_shards(sharding, ranks, seq / 2, seq, multiple);
          CHECK_NOTHROW(validate(shards, problem));
          const std::vector<std::int64_t> rows = rows_of(shards.k);
          const auto [least, most] = std::minmax_element(rows.begin(), rows.end());
          // Two pieces that differ by a unit each, and the last one may be short of one.
          if (multiple == 1) CHECK(*most - *least <= 2);
          if (multiple == 0 && seq >= 2 * ranks) CHECK(*least > 0);
        }
      }
    }
  }
  const ShardMap zigzag = make_shards(Sharding::kZigzag, 2, 8, 8, 1);
  CHECK(zigzag.q[0] == std::vector<Segment>{{0, 2}, {6, 2}});
  CHECK(zigzag.q[1] == std::vector<Segment>{{2, 4}});  // neighbours are one segment
}

TEST_CASE("worlds and maps that cannot be are refused, with the rank and the row") {
  const auto message = [](auto f) -> std::string {
    try {
      f();
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "";
  };
  const auto says = [](const std::string& text, const std::string& part) {
    CAPTURE(text);
    CHECK(text.find(part) != text.npos);
  };
  says(message([] { make_shards(Sharding::kZigzag, 0, 8, 8); }), "0 ranks");
  says(message([] { make_shards(Sharding::kZigzag, kMaxRanks + 1, 8, 8); }), "from 1 to 4096");
  says(message([] { make_shards(Sharding::kContiguous, 2, -1, 8); }), "-1");
  says(message([] { make_shards(static_cast<Sharding>(9), 2, 8, 8); }), "9");
  // No size leaves 64 bits on the way.
  for (const std::int64_t multiple : {std::int64_t{0}, std::int64_t{1}, INT64_MAX}) {
    const ShardMap huge = make_shards(Sharding::kZigzag, 3, INT64_MAX, 1, multiple);
    CHECK(total(huge.q) == INT64_MAX);
    CHECK(total(huge.k) == 1);
  }
  const Problem problem = problem_of(10, dense());
  const std::vector<std::vector<Segment>> good = {{{0, 4}}, {{4, 6}}};
  const auto map_says = [&](const std::vector<std::vector<Segment>>& q, const std::string& part) {
    says(message([&] { validate(ShardMap{q, good}, problem); }), part);
  };
  map_says({}, "0 ranks");
  map_says({{{0, 10}}}, "for 1 ranks");
  map_says({{{0, 4}}, {{5, 5}}}, "row 4 of Q is held by no rank");
  map_says({{{0, 4}}, {{3, 7}}}, "held twice, by rank 0 and rank 1");
  map_says({{{0, 4}}, {{4, 7}}}, "rank 1 holds rows [4, 4 + 7)");
  map_says({{{0, 4}}, {{INT64_MAX, 1}}}, "rank 1");
  map_says({{{-1, 4}}, {{3, 7}}}, "rank 0");
  CHECK_NOTHROW(validate(ShardMap{{{{4, 6}, {0, 4}}, {}}, good}, problem));
}

TEST_CASE("needs are exact") {
  Random random(test::seed_of(31));
  for (int i = 0; i < 150; ++i) {
    const test::Case c = test::random_ring_case(32, static_cast<std::uint64_t>(i));
    Problem problem = c.problem;
    const int ranks = 1 + static_cast<int>(random.below(7));
    const ShardMap shards = test::random_shards(random, ranks, problem.seq_q, problem.seq_k);
    const Needs needs = find_needs(problem, shards);
    for (int rank = 0; rank < ranks; ++rank) {
      for (int owner = 0; owner < ranks; ++owner) {
        const pattern::Placement at = placement_of(problem, shards, rank, owner);
        bool seen = false;
        for (std::int64_t head = 0; head < problem.heads && !seen; ++head) {
          for (const Segment& q : at.q) {
            for (const Segment& k : at.k) {
              for (std::int64_t row = 0; row < q.length && !seen; ++row) {
                for (std::int64_t key = 0; key < k.length && !seen; ++key) {
                  seen = problem.pattern.visible(head, q.start + row, k.start + key, at.context);
                }
              }
            }
          }
        }
        if (needs.at(rank, owner) != seen) {
          FAIL(c.text << " rank " << rank << " owner " << owner << " of " << ranks);
        }
      }
    }
  }
}

TEST_CASE("schedules of random worlds are right") {
  Random random(test::seed_of(33));
  for (int i = 0; i < 200; ++i) {
    const test::Case c = test::random_ring_case(34, static_cast<std::uint64_t>(i));
    const int ranks = 1 + static_cast<int>(random.below(8));
    const ShardMap shards = test::random_shards(random, ranks, c.problem.seq_q, c.problem.seq_k);
    const Schedule schedule = schedule_of(c.problem, shards);
    const std::string wrong = text_of(check_schedule(schedule, c.problem, shards));
    if (!wrong.empty()) FAIL(c.text << "\n" << wrong);
    for (int rank = 0; rank < ranks; ++rank)
      CHECK(schedule.launches(rank) <=
            ranks * static_cast<int>(c.problem.pattern.branches().size()));
    CHECK(schedule == schedule_of(c.problem, shards));
  }
}

TEST_CASE("a shard goes no further than it is needed, and empty hops launch nothing") {
  const int ranks = 6;
  const ShardMap shards = make_shards(Sharding::kContiguous, ranks, 600, 600, 1);
  const auto totals = [&](const Pattern& pattern) {
    const Schedule schedule = schedule_of(problem_of(600, pattern), shards);
    std::pair<int, int> counts = {0, 0};  // launches, sends
    for (int rank = 0; rank < ranks; ++rank) {
      counts.first += schedule.launches(rank);
      for (const Op& op : schedule.ops[static_cast<std::size_t>(rank)]) {
        counts.second += op.send_to != kNone;
      }
    }
    return counts;
  };
  CHECK(totals(dense()) == std::pair(36, 30));
  CHECK(totals(causal()) == std::pair(21, 15));
  // A window of one shard: each rank but the first reads the shard before it.
  CHECK(totals(causal() & window(100, 0)) == std::pair(11, 5));
  CHECK(totals(causal() & window(0, 0)) == std::pair(6, 0));
  // Nothing is visible at all: one launch each writes the empty rows.
  CHECK(totals(~dense()) == std::pair(6, 0));
  // Everybody reads the first token's shard and no other but its own.
  CHECK(totals(sink(1) | window(0, 0)) == std::pair(11, 5));
}

TEST_CASE("with one rank nothing is packed, sent or carried") {
  const Problem problem = problem_of(100, causal());
  const ShardMap shards = make_shards(Sharding::kZigzag, 1, 100, 100);
  const Schedule schedule = schedule_of(problem, shards);
  REQUIRE(schedule.ops[0].size() == 1);
  CHECK(schedule.ops[0][0].kind == Op::Kind::kCompute);
  CHECK(schedule.ops[0][0].first);
  CHECK(schedule.ops[0][0].last);
}

// What is wrong with a schedule after something was changed in it.
TEST_CASE("every planted mistake is found") {
  using Kind = Violation::Kind;
  const Problem problem = problem_of(500, dense());
  const ShardMap shards = make_shards(Sharding::kZigzag, 5, 500, 500);
  const Schedule good = schedule_of(problem, shards);
  REQUIRE(text_of(check_schedule(good, problem, shards)) == "");
  const auto plant = [&](auto change) {
    Schedule broken = good;
    change(broken.ops);
    return check_schedule(broken, problem, shards);
  };
  const auto find = [](std::vector<Op>& ops, Op::Kind kind, int step) -> Op& {
    for (Op& op : ops) {
      if (op.kind == kind && op.step == step) return op;
    }
    FAIL("no such op");
    return ops[0];
  };
  using All = std::vector<std::vector<Op>>;
  for (int rank = 0; rank < 5; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    CAPTURE(rank);
    for (int step = 1; step < 5; ++step) {
      CAPTURE(step);
      // A launch that does not wait for its keys.
      CHECK(has(plant([&](All& ops) { find(ops[at], Op::Kind::kCompute, step).waits.clear(); }),
                Kind::kOverwritten));
      // A launch on the other buffer.
      CHECK(has(plant([&](All& ops) { find(ops[at], Op::Kind::kCompute, step).buffer ^= 1; }),
                Kind::kNotThere));
      // A launch that takes another shard's keys for these.
      CHECK(has(plant([&](All& ops) {
                  Op& op = find(ops[at], Op::Kind::kCompute, step);
                  op.owner = (op.owner + 1) % 5;
                }),
                Kind::kPairMissing));
      // A launch that is left out, and one that is done twice.
      CHECK(has(plant([&](All& ops) {
                  const Op& op = find(ops[at], Op::Kind::kCompute, step);
                  Op copy = op;
                  copy.kind = Op::Kind::kJoin;
                  find(ops[at], Op::Kind::kCompute, step) = copy;
                }),
                Kind::kPairMissing));
      CHECK(
          has(plant([&](All& ops) { ops[at].push_back(find(ops[at], Op::Kind::kCompute, step)); }),
              Kind::kPairTwice));
    }
    for (int step = 0; step < 4; ++step) {
      CAPTURE(step);
      // A send to the wrong neighbour, of the wrong shard, from the wrong buffer.
      CHECK(has(plant([&](All& ops) {
                  find(ops[at], Op::Kind::kExchange, step).send_to = (rank + 2) % 5;
                }),
                Kind::kUnmatched));
      CHECK(has(plant([&](All& ops) {
                  Op& op = find(ops[at], Op::Kind::kExchange, step);
                  op.send_owner = (op.send_owner + 1) % 5;
                }),
                Kind::kUnmatched));
      CHECK(has(plant([&](All& ops) { find(ops[at], Op::Kind::kExchange, step).send_buffer ^= 1; }),
                Kind::kNotThere));
      // A lost send, a lost receive.
      CHECK(has(plant([&](All& ops) { find(ops[at], Op::Kind::kExchange, step).send_to = kNone; }),
                Kind::kUnmatched));
      CHECK(has(
          plant([&](All& ops) { find(ops[at], Op::Kind::kExchange, step).receive_from = kNone; }),
          Kind::kUnmatched));
      // A receive into the buffer that is being read.
      CHECK(has(
          plant([&](All& ops) { find(ops[at], Op::Kind::kExchange, step).receive_buffer ^= 1; }),
          Kind::kNotThere));
      // A buffer that is used again too early.
      if (step >= 2) {
        CHECK(has(plant([&](All& ops) { find(ops[at], Op::Kind::kExchange, step).waits.clear(); }),
                  Kind::kOverwritten));
      }
    }
    // Ranks that do not come back before their last exchange has ended.
    CHECK(has(plant([&](All& ops) { ops[at].pop_back(); }), Kind::kOverwritten));
    // Rows that are never finished, or started twice.
    CHECK(has(plant([&](All& ops) { find(ops[at], Op::Kind::kCompute, 4).last = false; }),
              Kind::kState));
    CHECK(has(plant([&](All& ops) { find(ops[at], Op::Kind::kCompute, 2).first = true; }),
              Kind::kState));
    CHECK(has(plant([&](All& ops) { find(ops[at], Op::Kind::kCompute, 2).last = true; }),
              Kind::kState));
    // A launch that waits for what comes after it.
    CHECK(has(plant([&](All& ops) { ops[at][0].waits = {3}; }), Kind::kIllFormed));
    CHECK(has(plant([&](All& ops) { ops[at][1].send_to = 77; }), Kind::kIllFormed));
  }
  // A hop that is lost on both sides.
  CHECK(has(plant([&](All& ops) {
              find(ops[1], Op::Kind::kExchange, 2).send_to = kNone;
              find(ops[2], Op::Kind::kExchange, 2).receive_from = kNone;
            }),
            Kind::kNotThere));
  // Exchanges in another order on two ranks wait for each other for ever.
  CHECK(has(plant([&](All& ops) {
              std::vector<Op*> exchanges;
              for (Op& op : ops[3]) {
                if (op.kind == Op::Kind::kExchange) exchanges.push_back(&op);
              }
              std::swap(*exchanges[0], *exchanges[1]);
            }),
            Kind::kStuck));
}

TEST_CASE("ranks that disagree are told who brought what") {
  const Problem problem = problem_of(100, causal());
  const ShardMap shards = make_shards(Sharding::kZigzag, 4, 100, 100);
  std::vector<Terms> ranks(4, terms_of(problem, shards, "sm_80", ""));
  CHECK_NOTHROW(require_agreement(ranks));
  const auto message = [&](int rank, const Problem& other, const ShardMap& map,
                           const std::string& config) -> std::string {
    std::vector<Terms> terms = ranks;
    terms[static_cast<std::size_t>(rank)] = terms_of(other, map, "sm_80", config);
    try {
      require_agreement(terms);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "agreed";
  };
  const auto says = [](const std::string& text, const std::string& part) {
    CAPTURE(text);
    CHECK(text.find(part) != text.npos);
  };
  Problem other = problem;
  other.seq_k = 99;
  says(message(2, other, shards, ""), "seq_k (Sk): rank 2 brought 99, rank 0, 1, 3 100");
  other = problem;
  other.pattern = causal() & window(5, 0);
  says(message(1, other, shards, ""), "rank 1 brought causal & window(5, 0)");
  other = problem;
  other.score.scale = 0.5;
  says(message(0, other, shards, ""), "scale: rank 0 brought 0.5");
  says(message(3, problem, make_shards(Sharding::kContiguous, 4, 100, 100), ""), "shards of Q");
  says(message(3, problem, shards, "mma m64 n64 w4 s2"), "configuration: rank 3");
  // Layouts of one file name with other contents.
  BlockLayout layout;
  layout.block_rows = layout.block_columns = 50;
  layout.seq_q = layout.seq_k = 100;
  layout.indptr = {0, 1, 2};
  layout.indices = {0, 1};
  Problem first = problem;
  first.pattern = blocks(layout);
  layout.indices = {0, 0};
  other.pattern = blocks(layout);
  const Terms a = terms_of(first, shards, "sm_80", "");
  Terms b = terms_of(other, shards, "sm_80", "");
  CHECK_FALSE(digest_of(a) == digest_of(b));
}

TEST_CASE("a sum sends what any branch needs, and each branch computes with what it needs") {
  const Problem problem = problem_of(400, sum({window(20, 0), sink(4) & causal()}));
  const ShardMap shards = make_shards(Sharding::kContiguous, 4, 400, 400, 1);
  const Needs needs = find_needs(problem, shards);
  for (int rank = 0; rank < 4; ++rank) {
    for (int owner = 0; owner < 4; ++owner) {
      CHECK(needs.at(rank, owner, 0) == (owner == rank || owner == rank - 1));
      CHECK(needs.at(rank, owner, 1) == (owner == 0));
    }
  }
  const Schedule schedule = schedule_of(problem, shards);
  CHECK(text_of(check_schedule(schedule, problem, shards)) == "");
  CHECK(schedule.launches(0) == 2);  // its own keys, through both
  CHECK(schedule.launches(1) == 3);  // its own, and those of rank 0 through both
  CHECK(schedule.launches(3) == 3);
  // Rank 0's shard goes all the way, the others' one step.
  CHECK(schedule.bytes_sent(0) == schedule.shard_bytes[0]);
  CHECK(schedule.bytes_sent(3) == 0);
  CHECK(schedule.bytes_sent(2) == 2 * schedule.shard_bytes[0]);
  // A launch of the wrong branch, or one too many, is found.
  for (std::size_t at = 0; at < schedule.ops[1].size(); ++at) {
    if (schedule.ops[1][at].kind != Op::Kind::kCompute) continue;
    Schedule broken = schedule;
    broken.ops[1][at].branch ^= 1;
    CHECK_FALSE(check_schedule(broken, problem, shards).empty());
  }
}

}  // namespace
}  // namespace annulus::ring
