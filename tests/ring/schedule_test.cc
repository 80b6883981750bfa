// Shards and schedules without a device, and the checker that must find planted mistakes.

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "annulus/types.h"
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

Schedule schedule_of(const Problem& problem, const ShardMap& shards, Route route = Route::kAuto) {
  const World world = plan_world(problem, shards, route);
  Schedule schedule;
  schedule.rounds = static_cast<int>(world.rounds.rounds.size());
  schedule.packed = world.rounds.packed;
  for (int rank = 0; rank < world.ranks(); ++rank) {
    const bool has_rows = rows_of(shards.q)[static_cast<std::size_t>(rank)] > 0;
    schedule.ranks.push_back(make_schedule(world.needs, world.rounds, rank, has_rows));
  }
  return schedule;
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
          // There are two pieces. Each may differ by one unit, and the last piece may be one
          // shorter.
          if (multiple == 1) CHECK(*most - *least <= 2);
          if (multiple == 0 && seq >= 2 * ranks) CHECK(*least > 0);
        }
      }
    }
  }
  const ShardMap zigzag = make_shards(Sharding::kZigzag, 2, 8, 8, 1);
  CHECK(zigzag.q[0] == std::vector<Segment>{{0, 2}, {6, 2}});
  CHECK(zigzag.q[1] == std::vector<Segment>{{2, 4}});  // adjacent pieces are one segment
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
  // No intermediate size may exceed 64 bits.
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

TEST_CASE("schedules of random worlds are right") {
  Random random(test::seed_of(33));
  for (int i = 0; i < 150; ++i) {
    const test::Case c = test::random_ring_case(34, static_cast<std::uint64_t>(i));
    const int ranks = 1 + static_cast<int>(random.below(8));
    const ShardMap shards = test::random_shards(random, ranks, c.problem.seq_q, c.problem.seq_k);
    const Route route = static_cast<Route>(i % 3);
    const Schedule schedule = schedule_of(c.problem, shards, route);
    const std::string wrong = text_of(check_schedule(schedule, c.problem, shards));
    if (!wrong.empty()) FAIL(c.text << "\n" << to_string(route) << "\n" << wrong);
    for (const RankSchedule& rank : schedule.ranks) {
      CHECK(rank.launches() <=
            (schedule.rounds + 1) * static_cast<int>(c.problem.pattern.branches().size()));
    }
    CHECK(schedule == schedule_of(c.problem, shards, route));
  }
}

// If a rank and an owner have more than 2^24 pairs, the checker examines rows one by one.
TEST_CASE("schedules of long shards are right") {
  for (const Route route : {Route::kDirect, Route::kRing}) {
    for (const char* pattern : {"causal & (window(900, 0) | global(16))", "causal & every(2, 0)"}) {
      const Problem problem = problem_of(16384, Pattern::parse(pattern));
      const ShardMap shards = make_shards(Sharding::kZigzag, 3, 16384, 16384);
      CHECK(text_of(check_schedule(schedule_of(problem, shards, route), problem, shards)) == "");
    }
  }
}

TEST_CASE("rows that close gaps are those that the schedule names, and no others") {
  // A need of every second key has more pieces than a need may have.
  const std::int64_t seq = 4 * static_cast<std::int64_t>(kMaxPieces) + 64;
  const Problem problem = problem_of(seq, every(2, 0));
  const ShardMap shards = {{{{0, 1}}, {{1, seq - 1}}}, {{{0, seq}}, {}}};
  Schedule schedule = schedule_of(problem, shards);
  CHECK(schedule.ranks[1].unseen_rows == seq / 2 - static_cast<std::int64_t>(kMaxPieces));
  CHECK(text_of(check_schedule(schedule, problem, shards)) == "");
  schedule.ranks[1].unseen_rows -= 1;
  CHECK(has(check_schedule(schedule, problem, shards), Violation::Kind::kUnneeded));
}

struct Totals {
  int launches = 0;
  std::int64_t rows = 0;
  friend bool operator==(const Totals&, const Totals&) = default;
};

TEST_CASE("only needed rows travel, and rounds that show a rank nothing launch nothing") {
  const int ranks = 6;
  const ShardMap shards = make_shards(Sharding::kContiguous, ranks, 600, 600, 1);
  const auto totals = [&](const Pattern& pattern, Route route) {
    const Schedule schedule = schedule_of(problem_of(600, pattern), shards, route);
    Totals sums;
    for (const RankSchedule& rank : schedule.ranks) {
      sums.launches += rank.launches();
      sums.rows += rank.rows_sent();
    }
    return sums;
  };
  // Half a shard is sent in a round: each rank has ten such launches, and one for its own keys.
  CHECK(totals(dense(), Route::kDirect) == Totals{66, 3000});
  CHECK(totals(causal(), Route::kDirect).rows == 1500);
  for (const Route route : {Route::kDirect, Route::kRing, Route::kAuto}) {
    CAPTURE(to_string(route));
    // With a window of one shard, each rank except the first reads the shard before it.
    CHECK(totals(causal() & window(100, 0), route) == Totals{11, 500});
    CHECK(totals(causal() & window(30, 0), route) == Totals{11, 150});
    CHECK(totals(causal() & window(0, 0), route) == Totals{6, 0});
    // Nothing is visible: one launch of each rank writes the empty rows.
    CHECK(totals(~dense(), route) == Totals{6, 0});
    // All ranks read the first token, and otherwise only their own.
    CHECK(totals(sink(1) | window(0, 0), route) == Totals{11, 5});
  }
}

TEST_CASE("a ring passes on what somebody further on needs, and counts what is only passed on") {
  // Ranks 2 and 3 see the first token, and ranks 1 and 4 do not.
  const Problem problem = problem_of(500, (sink(1) & queries(200, 400)) | window(0, 0));
  const ShardMap shards = make_shards(Sharding::kContiguous, 5, 500, 500, 1);
  const Schedule schedule = schedule_of(problem, shards, Route::kRing);
  CHECK(text_of(check_schedule(schedule, problem, shards)) == "");
  CHECK(schedule.ranks[0].rows_sent() == 2);
  for (const std::size_t relay : {std::size_t{1}, std::size_t{4}}) {
    CHECK(schedule.ranks[relay].rows_sent() == 1);
    CHECK(schedule.ranks[relay].unseen_rows == 1);
    CHECK(schedule.ranks[relay].launches() == 1);
  }
  CHECK(schedule.ranks[2].unseen_rows == 0);
  Schedule broken = schedule;
  broken.ranks[1].unseen_rows = 0;
  CHECK(has(check_schedule(broken, problem, shards), Violation::Kind::kUnneeded));
}

TEST_CASE("with one rank nothing is packed, sent or carried") {
  const Problem problem = problem_of(100, causal());
  const ShardMap shards = make_shards(Sharding::kZigzag, 1, 100, 100);
  const Schedule schedule = schedule_of(problem, shards);
  REQUIRE(schedule.ops_of(0).size() == 1);
  CHECK(schedule.ops_of(0)[0].kind == Op::Kind::kCompute);
  CHECK(schedule.ops_of(0)[0].first);
  CHECK(schedule.ops_of(0)[0].last);
}

// Changes a correct schedule, and returns the violations that the checker then finds.
class Planting {
 public:
  Planting(const Pattern& pattern, int ranks, Sharding sharding, Route route)
      : problem_(problem_of(100 * ranks, pattern)),
        shards_(make_shards(sharding, ranks, 100 * ranks, 100 * ranks, 1)),
        good_(schedule_of(problem_, shards_, route)) {
    REQUIRE(text_of(check_schedule(good_, problem_, shards_)) == "");
  }

  const Schedule& good() const { return good_; }
  template <typename Change>
  std::vector<Violation> plant(Change change) const {
    Schedule broken = good_;
    change(broken);
    return check_schedule(broken, problem_, shards_);
  }
  // Makes such a change in one op of one rank.
  template <typename Change>
  std::vector<Violation> plant(std::size_t rank, std::size_t op, Change change) const {
    return plant([&](Schedule& broken) { change(broken.ranks[rank].ops[op]); });
  }

 private:
  Problem problem_;
  ShardMap shards_;
  Schedule good_;
};

using Kind = Violation::Kind;

void plant_in_exchange(const Planting& planting, std::size_t rank, std::size_t at) {
  const Op& good = planting.good().ranks[rank].ops[at];
  const int ranks = planting.good().rank_count();
  const auto plant = [&](auto change) { return planting.plant(rank, at, change); };
  for (std::size_t i = 0; i < good.sends.size(); ++i) {
    CAPTURE(i);
    // A lost send, and sends to another rank, of another owner's rows, of other rows, and of fewer
    // rows.
    CHECK(has(plant([&](Op& op) { op.sends.erase(op.sends.begin() + static_cast<int>(i)); }),
              Kind::kUnmatched));
    CHECK(has(plant([&](Op& op) {
                do {
                  op.sends[i].peer = (op.sends[i].peer + 1) % ranks;
                } while (op.sends[i].peer == static_cast<int>(rank));
              }),
              Kind::kUnmatched));
    CHECK(has(plant([&](Op& op) { op.sends[i].owner = (op.sends[i].owner + 1) % ranks; }),
              Kind::kUnmatched));
    CHECK(has(plant([&](Op& op) { op.sends[i].rows -= 1; }), Kind::kUnmatched));
    // Other rows in the same place, and the same rows from another place.
    CHECK(has(plant([&](Op& op) { op.sends[i].row += 1; }), Kind::kNotThere));
    CHECK(
        has(plant([&](Op& op) { op.sends[i].slot = op.sends[i].slot == kOwnRows ? 0 : kOwnRows; }),
            Kind::kNotThere));
  }
  for (std::size_t i = 0; i < good.receives.size(); ++i) {
    CAPTURE(i);
    CHECK_FALSE(plant([&](Op& op) {
                  op.receives.erase(op.receives.begin() + static_cast<int>(i));
                }).empty());
    // Receives into the other slot, whose rows are used or out of range; into another place; and
    // beyond the slot.
    CHECK_FALSE(plant([&](Op& op) { op.receives[i].slot ^= 1; }).empty());
    CHECK(has(plant([&](Op& op) { op.receives[i].row += 100000; }), Kind::kTooMuch));
    if (good.receives.size() > 1) {
      CHECK(has(plant([&](Op& op) {
                  op.receives[i].row = op.receives[(i + 1) % op.receives.size()].row;
                }),
                Kind::kOverwritten));
    }
  }
  if (good.sends.size() > 1 && good.sends[0].peer == good.sends[1].peer) {
    CHECK(has(plant([&](Op& op) { std::swap(op.sends[0], op.sends[1]); }), Kind::kUnmatched));
  }
  // A slot that is overwritten too early.
  if (!good.waits.empty()) {
    CHECK(has(plant([&](Op& op) { op.waits.clear(); }), Kind::kOverwritten));
  }
  // A round that differs from the round of the others.
  CHECK_FALSE(plant([&](Op& op) { op.round = op.round == 0 ? 1 : op.round - 1; }).empty());
}

void plant_in_compute(const Planting& planting, std::size_t rank, std::size_t at) {
  const Op& good = planting.good().ranks[rank].ops[at];
  const auto plant = [&](auto change) { return planting.plant(rank, at, change); };
  // A launch that is left out, and a launch that is done twice.
  CHECK(has(plant([&](Op& op) {
              op.kind = Op::Kind::kJoin;
              op.waits = good.waits;
            }),
            Kind::kPairMissing));
  CHECK(has(planting.plant([&](Schedule& broken) { broken.ranks[rank].ops.push_back(good); }),
            Kind::kPairTwice));
  CHECK_FALSE(plant([&](Op& op) { op.last = !op.last; }).empty());
  CHECK(has(plant([&](Op& op) { op.first = !op.first; }), Kind::kState));
  if (good.round == kOwnKeys) {
    CHECK(has(plant([&](Op& op) { op.slot = 0; }), Kind::kNotThere));
    return;
  }
  // A launch that does not wait for its rows; launches on the other slot, on its own keys, and of
  // another round.
  CHECK(has(plant([&](Op& op) { op.waits.clear(); }), Kind::kOverwritten));
  CHECK(has(plant([&](Op& op) { op.slot ^= 1; }), Kind::kNotThere));
  CHECK(has(plant([&](Op& op) { op.slot = kCallersTensors; }), Kind::kNotThere));
  CHECK(has(plant([&](Op& op) { op.round -= 1; }), Kind::kPairMissing));
}

TEST_CASE("every planted mistake is found") {
  for (const Route route : {Route::kDirect, Route::kRing}) {
    CAPTURE(to_string(route));
    const Planting planting(dense(), 5, Sharding::kZigzag, route);
    for (std::size_t rank = 0; rank < 5; ++rank) {
      CAPTURE(rank);
      const std::vector<Op>& ops = planting.good().ranks[rank].ops;
      for (std::size_t at = 0; at < ops.size(); ++at) {
        CAPTURE(at);
        if (ops[at].kind == Op::Kind::kExchange) plant_in_exchange(planting, rank, at);
        if (ops[at].kind == Op::Kind::kCompute) plant_in_compute(planting, rank, at);
      }
      // Rows that are sent without being packed.
      CHECK(has(planting.plant(rank, 0, [&](Op& op) { op.kind = Op::Kind::kJoin; }),
                Kind::kNotThere));
      // A rank that returns before its last exchange has ended.
      CHECK(has(planting.plant([&](Schedule& broken) { broken.ranks[rank].ops.pop_back(); }),
                Kind::kOverwritten));
      // An op that waits for a later op, and a peer, a slot and rows that do not exist.
      CHECK(has(planting.plant(rank, 0, [](Op& op) { op.waits = {3}; }), Kind::kIllFormed));
      CHECK(
          has(planting.plant(rank, 1, [](Op& op) { op.sends.at(0).peer = 77; }), Kind::kIllFormed));
      CHECK(
          has(planting.plant(rank, 1, [](Op& op) { op.sends.at(0).slot = 2; }), Kind::kIllFormed));
      CHECK(has(planting.plant(rank, 1, [](Op& op) { op.receives.at(0).first += 1000; }),
                Kind::kIllFormed));
      // More rows than a rank may hold.
      CHECK(has(planting.plant([&](Schedule& broken) { broken.ranks[rank].slot_rows[0] += 1000; }),
                Kind::kTooMuch));
      // Rows that are packed twice.
      CHECK(has(planting.plant([&](Schedule& broken) {
        std::vector<pattern::Interval> pieces = broken.packed[rank].pieces();
        pieces.push_back({0, 1});
        broken.packed[rank] = PackedRows(pieces);
      }),
                Kind::kIllFormed));
    }
    // Rounds in another order on one rank deadlock.
    CHECK(has(planting.plant([&](Schedule& broken) {
      std::vector<Op*> exchanges;
      for (Op& op : broken.ranks[3].ops) {
        if (op.kind == Op::Kind::kExchange) exchanges.push_back(&op);
      }
      std::swap(exchanges[0]->round, exchanges[1]->round);
      std::swap(exchanges[0]->sends, exchanges[1]->sends);
      std::swap(exchanges[0]->receives, exchanges[1]->receives);
    }),
              Kind::kStuck));
  }
}

// Removes the rows that rank `from` sends to rank `to` in a round, on both sides.
void lose(Schedule& broken, int from, int to, int round) {
  for (const int rank : {from, to}) {
    for (Op& op : broken.ranks[static_cast<std::size_t>(rank)].ops) {
      if (op.kind != Op::Kind::kExchange || op.round != round) continue;
      auto& transfers = rank == from ? op.sends : op.receives;
      std::erase_if(transfers, [&](const Transfer& transfer) {
        return transfer.peer == (rank == from ? to : from);
      });
    }
  }
}

TEST_CASE("mistakes that both sides agree on are found") {
  // A message that is lost on both sides.
  const Planting direct(dense(), 5, Sharding::kZigzag, Route::kDirect);
  CHECK(has(direct.plant([](Schedule& broken) { lose(broken, 1, 2, 0); }), Kind::kPairMissing));
  // In a ring, a lost message also deprives a rank of rows that it should forward.
  const Planting ring(dense(), 5, Sharding::kZigzag, Route::kRing);
  CHECK(has(ring.plant([](Schedule& broken) { lose(broken, 1, 2, 0); }), Kind::kNotThere));

  // A parcel that is sent twice, and a parcel that no rank needs. With this window most ranks need
  // nothing from each other.
  const Planting window(causal() & ::annulus::window(120, 0), 5, Sharding::kContiguous,
                        Route::kDirect);
  const auto exchange = [](Schedule& broken, std::size_t rank) -> Op& {
    const auto at = std::ranges::find(broken.ranks[rank].ops, Op::Kind::kExchange, &Op::kind);
    REQUIRE(at != broken.ranks[rank].ops.end());
    return *at;
  };
  const auto append = [&](Schedule& broken, int from, int to, Transfer message) {
    Op& sender = exchange(broken, static_cast<std::size_t>(from));
    Op& receiver = exchange(broken, static_cast<std::size_t>(to));
    message.peer = to;
    message.slot = kOwnRows;
    message.row = message.first;
    sender.sends.push_back(message);
    message.peer = from;
    message.slot = 0;
    message.row = broken.ranks[static_cast<std::size_t>(to)].slot_rows[0];
    receiver.receives.push_back(message);
    broken.ranks[static_cast<std::size_t>(to)].slot_rows[0] += message.rows;
  };
  CHECK(has(window.plant([&](Schedule& broken) {
    const Transfer again = exchange(broken, 1).sends.at(0);
    append(broken, 1, again.peer, again);
  }),
            Kind::kPairTwice));
  CHECK(has(window.plant([&](Schedule& broken) {
    const Transfer rows = exchange(broken, 0).sends.at(0);
    append(broken, 0, 4, {.owner = 0, .first = rows.first, .rows = 1});
  }),
            Kind::kUnneeded));
  // Rows that the user does not see, instead of rows that it sees.
  CHECK_FALSE(window
                  .plant([&](Schedule& broken) {
                    for (Transfer* side :
                         {&exchange(broken, 0).sends.at(0), &exchange(broken, 1).receives.at(0)}) {
                      side->first += 1;
                      side->rows -= 1;
                      if (side->slot == kOwnRows) side->row += 1;
                    }
                  })
                  .empty());
}

TEST_CASE("ranks that disagree are told who brought what") {
  const Problem problem = problem_of(100, causal());
  const ShardMap shards = make_shards(Sharding::kZigzag, 4, 100, 100);
  std::vector<Terms> ranks(4, terms_of(problem, shards, Route::kAuto, "sm_80", ""));
  CHECK_NOTHROW(require_agreement(ranks));
  const auto message = [&](int rank, const Problem& other, const ShardMap& map,
                           const std::string& config) -> std::string {
    std::vector<Terms> terms = ranks;
    terms[static_cast<std::size_t>(rank)] = terms_of(other, map, Route::kAuto, "sm_80", config);
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
  ranks[1] = terms_of(problem, shards, Route::kRing, "sm_80", "");
  says(message(0, problem, shards, ""), "route: rank 1 brought ring, rank 0, 2, 3 auto");
  // Layouts with the same file name and different contents.
  BlockLayout layout;
  layout.block_rows = layout.block_columns = 50;
  layout.seq_q = layout.seq_k = 100;
  layout.indptr = {0, 1, 2};
  layout.indices = {0, 1};
  Problem first = problem;
  first.pattern = blocks(layout);
  layout.indices = {0, 0};
  other.pattern = blocks(layout);
  const Terms a = terms_of(first, shards, Route::kAuto, "sm_80", "");
  Terms b = terms_of(other, shards, Route::kAuto, "sm_80", "");
  CHECK_FALSE(digest_of(a) == digest_of(b));
}

TEST_CASE("the step that a ring is tuned by lies inside the layouts of its pattern") {
  Problem problem;
  problem.dim_qk = problem.dim_v = 64;
  problem.seq_q = 64;  // at the positions 192 to 255
  problem.seq_k = 256;
  BlockLayout layout;
  layout.block_rows = layout.block_columns = 64;
  layout.seq_q = problem.seq_q;
  layout.seq_k = problem.seq_k;
  layout.indptr = {0, 2};
  layout.indices = {0, 3};
  problem.pattern = causal() & blocks(layout);
  for (const int ranks : {1, 4}) {
    const ShardMap shards = make_shards(Sharding::kZigzag, ranks, problem.seq_q, problem.seq_k);
    const Problem step = tuned_step(problem, shards);
    CHECK_NOTHROW(validate(step));
    CHECK(step.pattern.visible(0, step.q_position(), step.k_position()));
  }
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
  CHECK(schedule.ranks[0].launches() == 2);  // its own keys, through both branches
  CHECK(schedule.ranks[1].launches() == 3);  // its own keys, and rank 0's through both branches
  // Its own keys, and in one round the keys of ranks 0 and 1.
  CHECK(schedule.ranks[2].launches() == 3);
  // Four rows go to ranks 2 and 3. The last 20 rows go to rank 1, which needs the four rows too.
  CHECK(schedule.ranks[0].rows_sent() == 4 + 4 + 24);
  CHECK(schedule.ranks[3].rows_sent() == 0);
  CHECK(schedule.ranks[2].rows_sent() == 20);
  // A launch of the wrong branch and an extra launch are found.
  for (std::size_t at = 0; at < schedule.ops_of(1).size(); ++at) {
    if (schedule.ops_of(1)[at].kind != Op::Kind::kCompute) continue;
    Schedule broken = schedule;
    broken.ranks[1].ops[at].branch ^= 1;
    CHECK_FALSE(check_schedule(broken, problem, shards).empty());
  }
}

}  // namespace
}  // namespace annulus::ring
