// The choice of the ranks that continue after ranks have gone, and of the rank to blame if messages
// do not arrive.

#include "exchange/survivors.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "base/random.h"
#include "exchange/verdict.h"
#include "support/options.h"

namespace annulus::exchange {
namespace {

using std::chrono::milliseconds;

TEST_CASE("ranks that miss the same one agree, and who is left out learns it") {
  Survivors zero(0, 3, {});
  Survivors one(1, 3, {});
  CHECK(zero.take_change());
  CHECK(!zero.take_change());
  zero.gone(2);
  CHECK(zero.members() == std::vector<int>{0, 1});
  CHECK(zero.take_change());
  one.heard(0, zero.members());
  CHECK(one.members() == zero.members());
  CHECK(one.agreed());
  CHECK(!zero.agreed());
  CHECK(zero.awaited() == std::vector<int>{1});
  zero.heard(1, one.members());
  CHECK(zero.agreed());

  Survivors two(2, 3, {});
  two.heard(0, std::vector<int>{0, 1});
  CHECK(two.left_out_by() == 0);
  const std::vector<int> without = {0};
  Survivors other(2, 3, without);  // it leaves out rank 0 too
  other.heard(0, std::vector<int>{0, 1});
  CHECK(!other.left_out_by());
  other.leave_out_silent();
  CHECK(other.members() == std::vector<int>{2});
  CHECK(other.agreed());
}

TEST_CASE("who has decided is followed, even where one of those has gone since") {
  Survivors two(2, 4, {});
  two.gone(3);
  two.heard(1, std::vector<int>{0, 1, 2});
  two.gone(0);
  two.decided(1, std::vector<int>{0, 1, 2});
  CHECK(two.agreed());
  CHECK(two.members() == std::vector<int>{0, 1, 2});
  two.gone(1);
  CHECK(two.members() == std::vector<int>{0, 1, 2});
}

// Ranks that send messages to each other over channels that keep the order. A rank may die at any
// moment. Then all, some or none of its last messages are delivered.
struct World {
  struct Said {
    bool decided = false;
    std::vector<int> members;
  };
  struct Node {
    std::optional<Survivors> survivors;
    bool alive = true, decided = false;
    std::map<int, std::deque<Said>> inbox;  // by sender
    std::set<int> ended;                    // senders that will send nothing more
  };
  std::vector<Node> nodes;
  base::Random random;

  World(int ranks, std::uint64_t seed) : nodes(static_cast<std::size_t>(ranks)), random(seed) {
    for (int rank = 0; rank < ranks; ++rank)
      at(rank).survivors.emplace(rank, ranks, std::span<const int>());
  }
  Node& at(int rank) { return nodes[static_cast<std::size_t>(rank)]; }
  int size() const { return static_cast<int>(nodes.size()); }
  int below(int end) { return static_cast<int>(random.below(static_cast<std::uint32_t>(end))); }

  void say(int from, const Said& said, int to_end) {
    for (int to = 0; to < to_end; ++to) {
      if (to != from) at(to).inbox[from].push_back(said);
    }
  }
  void die(int rank) {
    at(rank).alive = false;
    for (int to = 0; to < size(); ++to) at(to).ended.insert(rank);
  }
  // Performs the next action of a rank. With `dies`, it dies while it sends.
  void act(int rank, bool dies) {
    Node& node = at(rank);
    if (!node.alive || node.decided) return;
    const int reached = dies ? below(size() + 1) : size();
    if (node.survivors->take_change()) {
      say(rank, {false, node.survivors->members()}, reached);
    } else if (node.survivors->agreed()) {
      node.decided = true;
      say(rank, {true, node.survivors->members()}, reached);
    }
    if (dies) die(rank);
  }
  bool deliver(int rank) {
    Node& node = at(rank);
    if (!node.alive || node.decided) return false;
    std::vector<int> from;
    for (int other = 0; other < size(); ++other) {
      if (other == rank) continue;
      if (!node.inbox[other].empty() || node.ended.contains(other)) from.push_back(other);
    }
    if (from.empty()) return false;
    const int other = from[static_cast<std::size_t>(below(static_cast<int>(from.size())))];
    std::deque<Said>& box = node.inbox[other];
    if (box.empty()) {
      node.survivors->gone(other);
      node.ended.erase(other);
      return true;
    }
    const Said said = box.front();
    box.pop_front();
    if (said.decided) {
      node.survivors->decided(other, said.members);
    } else {
      node.survivors->heard(other, said.members);
    }
    return true;
  }
};

TEST_CASE("whoever lives decides, and all who go on together decide the same") {
  const int count = test::options().problems > 0 ? test::options().problems : 3000;
  int decided = 0;
  for (int index = 0; index < count; ++index) {
    CAPTURE(index);
    World world(2 + index % 6, test::options().seed * 7919 + static_cast<std::uint64_t>(index));
    int deaths = world.below(world.size());
    for (int step = 0; step < 4000; ++step) {
      const int rank = world.below(world.size());
      if (world.below(2) == 0) {
        world.deliver(rank);
        continue;
      }
      const bool dies = deaths > 0 && world.at(rank).alive && world.below(12) == 0;
      deaths -= dies ? 1 : 0;
      world.act(rank, dies);
    }
    for (int rank = 0; rank < world.size(); ++rank) {
      World::Node& node = world.at(rank);
      if (!node.alive) continue;
      REQUIRE(node.decided);
      ++decided;
      const std::vector<int>& members = node.survivors->members();
      CHECK(std::ranges::binary_search(members, rank));
      for (int other = 0; other < world.size(); ++other) {
        const bool member = std::ranges::binary_search(members, other);
        const World::Node& its = world.at(other);
        if (its.alive) CHECK(member);
        if (member && its.decided) CHECK(its.survivors->members() == members);
      }
    }
  }
  CHECK(decided > count);
}

RankState state(int rank, std::int64_t run, std::int64_t round, bool gone = false) {
  RankState state;
  state.rank = rank;
  state.posted = run >= 0;
  state.position = {1, run, round};
  state.gone = gone;
  return state;
}

TEST_CASE("who has gone is blamed before who is late, and of those who are late the last") {
  const Place at = {7, 2};
  const milliseconds waited(300);
  const std::vector<RankState> late = {state(1, 7, 2), state(2, 7, 0), state(3, 7, 1)};
  Notice notice = blame(late, 4, at, waited);
  CHECK(notice.ranks == std::vector<int>{2});
  CHECK(notice.text ==
        "rank 2 of 4 has not reached round 2 of run 7 within 300 ms, being at round 0 of run 7");

  const std::vector<RankState> between = {state(1, 7, -1), state(2, 7, -1)};
  notice = blame(between, 3, at, waited);
  CHECK(notice.ranks == std::vector<int>{1, 2});
  CHECK(notice.text ==
        "ranks 1 and 2 of 3 have not reached round 2 of run 7 within 300 ms, being before run 7");

  const std::vector<RankState> gone = {state(1, 7, 0), state(2, 7, 2, true)};
  notice = blame(gone, 3, at, waited);
  CHECK(notice.ranks == std::vector<int>{2});
  CHECK(notice.text == "rank 2 of 3 has gone before the end of round 2 of run 7");
  CHECK(gone_before(gone, at) == std::vector<int>{2});

  // A rank that had passed the place before it ended is not to blame.
  const std::vector<RankState> ended = {state(1, 8, -1, true), state(2, 7, 2)};
  CHECK(gone_before(ended, at).empty());
  notice = blame(ended, 3, at, waited);
  CHECK(notice.ranks.empty());
  CHECK(notice.text ==
        "all ranks have reached round 2 of run 7, whose messages have not ended within 300 ms");

  // All ranks have arrived, and one is silent since.
  std::vector<RankState> come = {state(1, 7, 2), state(2, 7, 2)};
  come[0].silent = milliseconds(280);
  come[1].silent = milliseconds(40);
  notice = blame(come, 3, at, waited);
  CHECK(notice.ranks == std::vector<int>{1});
  CHECK(notice.text ==
        "rank 1 of 3 has reached round 2 of run 7 and sent nothing since, for 150 ms or more");
  come[0].silent = milliseconds(140);
  CHECK(blame(come, 3, at, waited).ranks.empty());

  // Two ranks are at the same place, and one of them waits for the other.
  std::vector<RankState> stuck = {state(1, 7, 1), state(2, 7, 1), state(3, 7, 2)};
  CHECK(blame(stuck, 4, at, waited).ranks == std::vector<int>{1, 2});
  stuck[1].silent = milliseconds(290);
  stuck[2].silent = milliseconds(200);
  CHECK(blame(stuck, 4, at, waited).ranks == std::vector<int>{2});

  const std::vector<RankState> silent = {state(1, -1, 0)};
  notice = blame(silent, 2, {0, 0}, waited);
  CHECK(notice.ranks == std::vector<int>{1});
  CHECK(notice.text == "rank 1 of 2 has not reached round 0 of run 0 within 300 ms");
}

TEST_CASE(
    "an error of NCCL blames ranks that have gone, else those that do not answer, else nobody") {
  constexpr std::chrono::milliseconds waited(300);
  const std::vector<int> dead = {2}, silent = {1, 3}, none;
  Notice notice = blame_for_error("rank 0 of 4: ncclSend failed", dead, silent, 4, waited);
  CHECK(notice.ranks == dead);
  CHECK(notice.text == "rank 2 of 4 has gone; rank 0 of 4: ncclSend failed");
  notice = blame_for_error("an error", none, silent, 4, waited);
  CHECK(notice.ranks == silent);
  CHECK(notice.text == "ranks 1 and 3 of 4 have not answered for 300 ms; an error");
  notice = blame_for_error("an error", none, none, 4, waited);
  CHECK(notice.ranks.empty());
  CHECK(notice.text == "all ranks answer, so no rank is to blame; an error");
}

}  // namespace
}  // namespace annulus::exchange
