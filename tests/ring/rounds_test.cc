// Needs, packed rows, and the rounds in which rows are sent, without a device.

#include "ring/rounds.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/random.h"
#include "base/work.h"
#include "ring/free_rounds.h"
#include "ring/routes.h"
#include "support/options.h"
#include "support/ring_case.h"

namespace annulus::ring {
namespace {

using pattern::Interval;
using pattern::IntervalSet;

std::vector<std::int64_t> lengths_of(const std::vector<std::vector<Segment>>& shards) {
  std::vector<std::int64_t> rows;
  for (const auto& shard : shards) rows.push_back(pattern::total_length(shard));
  return rows;
}

Problem long_problem(std::int64_t seq, const Pattern& pattern) {
  Problem problem;
  problem.seq_q = problem.seq_k = seq;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = pattern;
  return problem;
}

// The rows of a shard that any row of a rank sees through one branch. They are found pair by pair.
IntervalSet seen_rows(const Problem& problem, const Pattern& branch, const ShardMap& shards,
                      int rank, int owner) {
  IntervalSet seen;
  std::int64_t row = 0;
  PatternContext context = problem.context();
  for (const Segment& keys : shards.k[static_cast<std::size_t>(owner)]) {
    for (std::int64_t key = keys.start; key < keys.start + keys.length; ++key, ++row) {
      bool sees = false;
      for (std::int64_t batch = 0; batch < branch.distinct_batches(problem.batch); ++batch) {
        context.batch = batch;
        for (std::int64_t head = 0; head < problem.heads && !sees; ++head) {
          for (const Segment& rows : shards.q[static_cast<std::size_t>(rank)]) {
            for (std::int64_t q = rows.start; q < rows.start + rows.length && !sees; ++q) {
              sees = branch.visible(head, problem.q_position() + q, problem.k_position() + key,
                                    context);
            }
          }
        }
      }
      if (sees) pattern::append(&seen, {row, row + 1});
    }
  }
  return seen;
}

TEST_CASE("needs name the rows that are seen, through each branch and through any") {
  base::Random random(test::seed_of(35));
  for (int i = 0; i < 120; ++i) {
    const test::Case c = test::random_ring_case(36, static_cast<std::uint64_t>(i));
    Problem problem = c.problem;
    if (i % 5 == 0 && problem.pattern.branches().size() == 1) {
      problem.pattern = batches({problem.pattern, causal() & window(random.below(60), 0)});
    }
    const int ranks = 1 + static_cast<int>(random.below(6));
    const ShardMap shards = test::random_shards(random, ranks, problem.seq_q, problem.seq_k);
    const Needs needs = find_needs(problem, shards);
    const std::vector<Pattern> branches = problem.pattern.branches();
    REQUIRE(needs.branches() == static_cast<int>(branches.size()));
    CAPTURE(c.text);
    for (int rank = 0; rank < ranks; ++rank) {
      for (int owner = 0; owner < ranks; ++owner) {
        IntervalSet all;
        for (int branch = 0; branch < needs.branches(); ++branch) {
          const IntervalSet seen =
              seen_rows(problem, branches[static_cast<std::size_t>(branch)], shards, rank, owner);
          const Need* need = needs.find(rank, owner, branch);
          REQUIRE((need == nullptr ? IntervalSet() : need->rows) == seen);
          const IntervalSet before = all;
          pattern::unite(before, seen, &all);
        }
        const Need* need = needs.find(rank, owner);
        REQUIRE((need == nullptr ? IntervalSet() : need->rows) == all);
        if (need != nullptr) REQUIRE(need->unneeded == 0);
      }
    }
  }
}

TEST_CASE("of more pieces than a need has, the smallest gaps are closed and counted") {
  // Pieces of one key. The gaps are one key in the first half of the shard, and three keys in the
  // second half.
  const std::int64_t seq = 8 * static_cast<std::int64_t>(kMaxPieces);
  Problem problem = long_problem(seq, (every(2, 0) & keys(0, seq / 2)) | every(4, 0));
  const ShardMap shards = {{{{0, 1}}, {{1, seq - 1}}}, {{{0, seq}}, {}}};
  const Needs needs = find_needs(problem, shards);
  for (const int rank : {0, 1}) {
    const Need* need = needs.find(rank, 0);
    REQUIRE(need != nullptr);
    REQUIRE(need->rows.size() == kMaxPieces);
    // 3 kMaxPieces pieces must be reduced by 2 kMaxPieces, which is exactly the number of gaps of
    // one key.
    const auto pieces = static_cast<std::int64_t>(kMaxPieces);
    CHECK(need->unneeded == 2 * pieces);
    CHECK(pattern::size(need->rows) - need->unneeded == 3 * pieces);
    CHECK(need->rows.front() == Interval{0, seq / 2 + 1});
  }
  // kMaxPieces pieces, the permitted number, stay separate.
  problem.pattern = every(8, 0);
  CHECK(find_needs(problem, shards).find(1, 0)->unneeded == 0);
  CHECK(find_needs(problem, shards).find(1, 0)->rows.size() == kMaxPieces);
}

std::size_t ranges_of(const PackedRows& packed, const std::vector<IntervalSet>& takers) {
  std::size_t ranges = 0;
  for (const IntervalSet& taker : takers) ranges += packed.places_of(taker).size();
  return ranges;
}

PackedRows pack(const std::vector<IntervalSet>& takers) {
  std::vector<const IntervalSet*> pointers;
  for (const IntervalSet& taker : takers) pointers.push_back(&taker);
  return pack_rows_of(pointers);
}

TEST_CASE("packed rows give each taker one range where an order of the rows does") {
  // A rank with two segments of 100 rows. Its neighbours need the ends of the segments, and all
  // ranks need certain rows: at the front, in the middle, or at the ends.
  for (const Interval global : {Interval{0, 8}, {40, 48}, {90, 98}, {100, 110}, {150, 151}}) {
    IntervalSet after, before;
    pattern::unite({{70, 100}}, {global}, &after);
    pattern::unite({{170, 200}}, {global}, &before);
    const std::vector<IntervalSet> takers = {after, {global}, before, {global}, {global}};
    CAPTURE(global.begin);
    CHECK(ranges_of(pack(takers), takers) == takers.size());
  }
  // Each of the three pairs of users shares rows. No order gives every user a single range.
  const std::vector<IntervalSet> circle = {{{0, 20}}, {{10, 30}}, {{0, 10}, {20, 30}}};
  CHECK(ranges_of(pack(circle), circle) == 4);
  // The shard's own order is kept if no other order is better.
  CHECK(pack({{{5, 9}, {20, 30}}}).pieces() == std::vector<Interval>{{5, 9}, {20, 30}});
  CHECK(pack({}).count() == 0);
}

TEST_CASE("packed rows hold every taken row once, and know where it is") {
  base::Random random(test::seed_of(37));
  for (int i = 0; i < 200; ++i) {
    std::vector<IntervalSet> takers(1 + random.below(6));
    std::set<std::int64_t> rows;
    for (IntervalSet& taker : takers) {
      for (std::int64_t at = random.below(20); at < 120;) {
        const std::int64_t end = at + 1 + random.below(25);
        pattern::append(&taker, {at, end});
        for (; at < end; ++at) rows.insert(at);
        at += random.below(30);
      }
    }
    const PackedRows packed = pack(takers);
    REQUIRE(packed.count() == static_cast<std::int64_t>(rows.size()));
    std::vector<std::int64_t> order;
    packed.each_piece({0, packed.count()}, [&](const Interval& piece) {
      for (std::int64_t row = piece.begin; row < piece.end; ++row) order.push_back(row);
    });
    REQUIRE(std::set(order.begin(), order.end()) == rows);
    for (const IntervalSet& taker : takers) {
      std::set<std::int64_t> expected, found;
      for (const Interval& interval : taker) {
        for (std::int64_t row = interval.begin; row < interval.end; ++row) expected.insert(row);
      }
      for (const Interval& place : packed.places_of(taker)) {
        packed.each_piece(place, [&](const Interval& piece) {
          for (std::int64_t row = piece.begin; row < piece.end; ++row) found.insert(row);
        });
      }
      REQUIRE(found == expected);
    }
  }
}

// Executes rounds row by row. A row is (owner, number).
class Playback {
 public:
  using Row = std::pair<int, std::int64_t>;

  Playback(const Rounds& rounds, const ShardMap& shards) : rounds_(rounds) {
    const auto ranks = static_cast<std::size_t>(rounds.ranks());
    REQUIRE(shards.k.size() == ranks);
    received_.resize(ranks);
    packed_.resize(ranks);
    for (std::size_t owner = 0; owner < ranks; ++owner) {
      rounds.packed[owner].each_piece({0, rounds.packed[owner].count()}, [&](const Interval& rows) {
        for (std::int64_t row = rows.begin; row < rows.end; ++row) {
          packed_[owner].push_back({static_cast<int>(owner), row});
        }
      });
    }
    slots_[0].resize(ranks);
    slots_[1].resize(ranks);
    for (std::size_t t = 0; t < rounds.rounds.size(); ++t) play(t);
  }

  // The number of arrivals of each row at a rank.
  const std::map<Row, int>& received(int rank) const {
    return received_[static_cast<std::size_t>(rank)];
  }

 private:
  void play(std::size_t t) {
    const auto before = slots_;
    for (auto& slot : slots_[t % 2]) slot.clear();
    int last = 0;
    for (const Message& message : rounds_.rounds[t]) {
      REQUIRE(message.from != message.to);
      REQUIRE(message.rows > 0);
      REQUIRE(message.to >= last);
      last = message.to;
      if (message.from_slot != kOwnRows) {
        REQUIRE(message.from_slot == static_cast<int>((t + 1) % 2));
      } else {
        REQUIRE(message.from == message.owner);
      }
      const auto from = static_cast<std::size_t>(message.from);
      const std::vector<Row>& source =
          message.from_slot == kOwnRows ? packed_[from]
                                        : before[static_cast<std::size_t>(message.from_slot)][from];
      std::vector<Row>& slot = slots_[t % 2][static_cast<std::size_t>(message.to)];
      REQUIRE(static_cast<std::int64_t>(slot.size()) == message.to_row);
      REQUIRE(message.from_row + message.rows <= static_cast<std::int64_t>(source.size()));
      const std::vector<Row>& whole = packed_[static_cast<std::size_t>(message.owner)];
      for (std::int64_t row = 0; row < message.rows; ++row) {
        const Row moved = source[static_cast<std::size_t>(message.from_row + row)];
        REQUIRE(moved == whole[static_cast<std::size_t>(message.first + row)]);
        slot.push_back(moved);
        ++received_[static_cast<std::size_t>(message.to)][moved];
      }
      REQUIRE(static_cast<std::int64_t>(slot.size()) <=
              rounds_.slot_rows[static_cast<std::size_t>(message.to)][t % 2]);
    }
  }

  const Rounds& rounds_;
  std::vector<std::vector<Row>> packed_;                // [owner]
  std::array<std::vector<std::vector<Row>>, 2> slots_;  // [slot][rank]
  std::vector<std::map<Row, int>> received_;            // [rank]
};

void check_rounds(const Rounds& rounds, const Needs& needs, const ShardMap& shards) {
  const Playback playback(rounds, shards);
  std::int64_t sent = 0, relayed = 0;
  for (int rank = 0; rank < needs.ranks(); ++rank) {
    std::set<Playback::Row> needed;
    for (const Need& need : needs.of(rank)) {
      if (need.owner == rank) continue;
      for (const Interval& rows : need.rows) {
        for (std::int64_t row = rows.begin; row < rows.end; ++row) {
          needed.insert({need.owner, row});
        }
      }
    }
    std::size_t found = 0;
    for (const auto& [row, times] : playback.received(rank)) {
      REQUIRE(times == 1);
      REQUIRE(row.first != rank);
      ++sent;
      if (needed.contains(row)) {
        ++found;
      } else {
        ++relayed;
      }
    }
    REQUIRE(found == needed.size());
  }
  CHECK(sent == rounds.rows_sent);
  CHECK(relayed == rounds.rows_relayed);
  CHECK(rounds.rows_sent == rounds.rows_needed + rounds.rows_unneeded + rounds.rows_relayed);
  if (rounds.route == Route::kDirect) CHECK(relayed == 0);
  const std::vector<std::int64_t> lengths = lengths_of(shards.k);
  const std::int64_t largest = *std::ranges::max_element(lengths);
  for (int rank = 0; rank < needs.ranks(); ++rank) {
    const std::int64_t packed = rounds.packed[static_cast<std::size_t>(rank)].count();
    CHECK(packed <= lengths[static_cast<std::size_t>(rank)]);
    CHECK(rounds.held_rows(rank) <= std::max(2 * largest, packed + 4));
  }
}

// Checks that the size of a ring is found without its messages.
void check_size(const RingRoute& route, const Rounds& rounds) {
  std::int64_t max_held = 0;
  for (int rank = 0; rank < rounds.ranks(); ++rank) {
    max_held = std::max(max_held, rounds.held_rows(rank));
  }
  CHECK(route.size().rows_sent == rounds.rows_sent);
  CHECK(route.size().rounds == rounds.rounds.size());
  CHECK(route.size().max_held == max_held);
}

TEST_CASE("rounds of random worlds bring every rank what it needs, once") {
  base::Random random(test::seed_of(38));
  for (int i = 0; i < 120; ++i) {
    const test::Case c = test::random_ring_case(39, static_cast<std::uint64_t>(i));
    const int ranks = 1 + static_cast<int>(random.below(9));
    const ShardMap shards = test::random_shards(random, ranks, c.problem.seq_q, c.problem.seq_k);
    const Needs needs = find_needs(c.problem, shards);
    const std::vector<std::int64_t> lengths = lengths_of(shards.k);
    CAPTURE(c.text);
    CAPTURE(ranks);
    for (const Route route : {Route::kDirect, Route::kRing, Route::kAuto}) {
      const Rounds rounds = make_rounds(needs, lengths, route);
      CAPTURE(rounds.reason);
      if (route != Route::kAuto) CHECK(rounds.route == route);
      if (route == Route::kRing) check_size(RingRoute({needs, std::ranges::max(lengths)}), rounds);
      check_rounds(rounds, needs, shards);
      CHECK(rounds == make_rounds(needs, lengths, route));
    }
  }
}

// Shards must be long enough to be cut at multiples of 128 rows.
TEST_CASE("rounds of long shards are cut at multiples of 128 rows, and are few") {
  for (const int ranks : {3, 4, 7}) {
    for (const Sharding sharding : {Sharding::kContiguous, Sharding::kZigzag}) {
      for (const Pattern& pattern : {dense(), causal(), causal() & window(15000, 0)}) {
        const Problem problem = long_problem(128 * 401, pattern);
        const ShardMap shards = make_shards(sharding, ranks, problem.seq_q, problem.seq_k);
        const Needs needs = find_needs(problem, shards);
        CAPTURE(ranks);
        CAPTURE(pattern.to_string());
        for (const Route route : {Route::kDirect, Route::kRing}) {
          const Rounds rounds = make_rounds(needs, lengths_of(shards.k), route);
          check_rounds(rounds, needs, shards);
          for (const std::vector<Message>& round : rounds.rounds) {
            if (pattern == dense() && route == Route::kDirect) {
              for (const Message& message : round) CHECK(message.rows % 128 == 0);
            }
          }
          // A round sends half a shard, and there may be one round more or less.
          if (pattern == dense()) {
            CHECK(rounds.rounds.size() <= 2 * static_cast<std::size_t>(ranks) + 2);
          }
        }
      }
    }
  }
}

struct Counted {
  Rounds rounds;
  std::int64_t pairs = 0;      // (sender, receiver, round) with a message
  std::int64_t exchanges = 0;  // rounds of the rank that takes part in most rounds
};

Counted count_rounds(const Pattern& pattern, int ranks, Sharding sharding) {
  const Problem problem = long_problem(std::int64_t{1} << 20, pattern);
  const ShardMap shards = make_shards(sharding, ranks, problem.seq_q, problem.seq_k);
  Counted counted{make_rounds(find_needs(problem, shards), lengths_of(shards.k), Route::kAuto)};
  std::map<int, std::int64_t> exchanges;
  for (const std::vector<Message>& round : counted.rounds.rounds) {
    std::set<std::pair<int, int>> pairs;
    std::set<int> ranks_of;
    for (const Message& message : round) {
      pairs.insert({message.from, message.to});
      ranks_of.insert({message.from, message.to});
    }
    counted.pairs += std::ssize(pairs);
    for (const int rank : ranks_of) ++exchanges[rank];
  }
  for (const auto& [rank, count] : exchanges) {
    counted.exchanges = std::max(counted.exchanges, count);
  }
  return counted;
}

TEST_CASE("a million tokens: only needed rows, in few exchanges, one message for each") {
  const Pattern local = causal() & window(4095, 0);
  const Pattern usual[] = {causal(),
                           dense(),
                           local,
                           causal() & (window(4095, 0) | global(256)),
                           causal() & (window(4095, 0) | sink(4)),
                           causal() & documents({0, 100000, 300000, 500000, 620000, 900000}),
                           causal() & (window(1023, 0) | prefix(65536)),
                           causal() & strided(64, 8, 64),
                           heads({local, causal() & (window(1023, 0) | sink(64))})};
  for (const Pattern& pattern : usual) {
    for (const Sharding sharding : {Sharding::kContiguous, Sharding::kZigzag}) {
      for (const int ranks : {2, 3, 5, 8, 16, 64}) {
        const Counted counted = count_rounds(pattern, ranks, sharding);
        CAPTURE(pattern.to_string());
        CAPTURE(ranks);
        CHECK(counted.rounds.rows_sent * 100 <= counted.rounds.rows_needed * 102);
        CHECK(counted.rounds.messages == counted.pairs);
      }
    }
  }
  CHECK(count_rounds(local, 64, Sharding::kZigzag).exchanges <= 2);
  CHECK(count_rounds(usual[5], 16, Sharding::kZigzag).exchanges <= 11);
}

TEST_CASE("auto says why it takes a route") {
  const auto reason = [](const Pattern& pattern, int ranks, Route route = Route::kAuto) {
    const Problem problem = long_problem(4096, pattern);
    const ShardMap shards = make_shards(Sharding::kZigzag, ranks, 4096, 4096);
    return make_rounds(find_needs(problem, shards), lengths_of(shards.k), route).reason;
  };
  CHECK(reason(causal(), 1) == "direct: no rank needs a row of another");
  CHECK(reason(dense(), 2) ==
        "direct: 4096 rows in 1 round, at most 4096 held; a ring takes no fewer rounds");
  CHECK(
      reason(dense(), 4) ==
      "direct: 12288 rows in 6 rounds, at most 2048 held; a ring: 12288 rows in 8 rounds, at most "
      "1792 held");
  CHECK(reason(dense(), 2, Route::kRing) ==
        "ring was requested: 4096 rows in 1 round, at most 4096 held");
}

TEST_CASE("the first round with room for a message is found") {
  base::Random random(test::seed_of(40));
  for (int i = 0; i < 40; ++i) {
    // The capacities range from a few rows to many, so some rounds have slightly less room than
    // others.
    const std::size_t rounds = 1 + random.below(200);
    const std::int64_t most = std::int64_t{1} << random.below(12);
    std::array<std::vector<std::int64_t>, 2> capacity;
    for (auto& of_rank : capacity) of_rank = {1 + random.below(most), 1 + random.below(most)};
    FreeRounds receiving(rounds, capacity), sending(rounds, capacity);
    for (int message = 0; message < 300; ++message) {
      const int to = static_cast<int>(random.below(2)), from = 1 - to;
      const std::int64_t rows = 1 + random.below(most);
      std::size_t expected = 0;
      const auto fits = [&](std::size_t round) {
        return receiving.room(to, round) >= rows && sending.room(from, round) >= rows;
      };
      while (expected < rounds && !fits(expected)) ++expected;
      const FreeSet set = receiving.at_least(to, rows);
      for (std::size_t round = 0; round < rounds; ++round) {
        const bool in_set = (set.word(round / 64) >> round % 64 & 1) != 0;
        const std::int64_t room = receiving.room(to, round);
        REQUIRE((in_set ? 8 * room > 7 * rows : room < rows));
      }
      REQUIRE(first_common(set, sending.at_least(from, rows), rounds, fits) == expected);
      if (expected == rounds) continue;
      receiving.take(to, expected, rows);
      sending.take(from, expected, rows);
    }
  }
}

TEST_CASE("the steps to plan a causal ring grow as its messages") {
  const auto steps = [](const Pattern& pattern, int ranks, Sharding sharding) {
    const Problem problem = long_problem(1000 * ranks, pattern);
    const ShardMap shards = make_shards(sharding, ranks, problem.seq_q, problem.seq_k);
    const base::Work work({}, "planning a ring");
    make_rounds(find_needs(problem, shards), lengths_of(shards.k), Route::kAuto);
    return work.steps();
  };
  for (const Sharding sharding : {Sharding::kContiguous, Sharding::kZigzag}) {
    // Four times as many ranks have 16 times as many messages. If 512 ranks need less than a
    // quarter of the default limit of a call, 1,024 ranks need less than the limit.
    const std::int64_t of_512 = steps(causal(), 512, sharding);
    CHECK(of_512 < 20 * steps(causal(), 128, sharding));
    CHECK(of_512 < kDefaultWorkSteps / 4);
  }
}

TEST_CASE("making rounds is counted, ends at its limit and wherever it is cancelled") {
  const int ranks = 192;
  const Problem problem = long_problem(128 * ranks, causal());
  const ShardMap shards = make_shards(Sharding::kZigzag, ranks, problem.seq_q, problem.seq_k);
  const Needs needs = find_needs(problem, shards);
  // Returns how often `cancelled` was called, and the error that was thrown.
  const auto ask = [&](const WorkLimit& given, int most) {
    int asked = 0;
    WorkLimit limit = given;
    limit.cancelled = [&] { return ++asked > most; };
    std::optional<ErrorCode> code;
    try {
      const base::Work work(limit, "planning a ring");
      make_rounds(needs, lengths_of(shards.k), Route::kAuto);
    } catch (const Error& error) {
      code = error.code();
    }
    return std::pair(asked, code);
  };
  const auto [asked, none] = ask({.steps = 0}, 1 << 30);
  CHECK(asked > 300);
  CHECK(!none);
  for (const int most : {1, asked / 2, asked - 1}) {
    CHECK(ask({.steps = 0}, most) == std::pair(most + 1, std::optional(ErrorCode::kCancelled)));
  }
  CHECK(ask({.steps = 1'000'000}, 1 << 30).second == ErrorCode::kLimit);
}

}  // namespace
}  // namespace annulus::ring
