// The remaining ranks continue over their existing connections.

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "annulus/communicator.h"
#include "annulus/types.h"
#include "api/rendezvous_impl.h"
#include "exchange/ranks.h"

namespace annulus {
namespace {

using namespace std::chrono_literals;
using test::comes_true;
using Clock = std::chrono::steady_clock;

std::vector<std::byte> bytes_of(int number) { return {static_cast<std::byte>(number)}; }

// The code and the text of what a call threw.
struct Thrown {
  std::optional<ErrorCode> code;
  std::string text;
};
Thrown thrown_by(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {};
}

// Checks that all ranks of a rendezvous receive each other's bytes in the order of ranks.
bool hear_each_other(const Rendezvous& ranks) {
  const auto all = ranks.all_gather(bytes_of(ranks.rank()), 5s);
  for (int rank = 0; rank < ranks.ranks(); ++rank) {
    if (all[static_cast<std::size_t>(rank)] != bytes_of(rank)) return false;
  }
  return all.size() == static_cast<std::size_t>(ranks.ranks());
}

TEST_CASE("ranks regroup when one has gone, and again when the next has") {
  std::atomic<int> right = 0;
  test::on_meeting(5, [&](const Rendezvous& first) {
    CHECK(first.generation() == 1);
    CHECK(first.members() == std::vector<int>{0, 1, 2, 3, 4});
    CHECK(hear_each_other(first));
    if (first.rank() == 2) return;
    // Calls of the old generation that only some ranks have made do not matter.
    for (int call = 0; call < first.rank(); ++call) static_cast<void>(first.gather({}, 1ms));
    first.post({1, 7, 7});
    const Rendezvous second = first.regroup();
    CHECK(second.generation() == 2);
    CHECK(second.members() == std::vector<int>{0, 1, 3, 4});
    CHECK(second.ranks() == 4);
    CHECK(second.members()[static_cast<std::size_t>(second.rank())] == first.rank());
    for (const RankState& state : second.states()) CHECK(!state.gone);
    CHECK(hear_each_other(second));
    const Thrown again = thrown_by([&] { static_cast<void>(first.gather({}, 1s)); });
    CHECK(again.code == ErrorCode::kCommunication);
    CHECK(again.text.find("continued as generation 2") != std::string::npos);
    CHECK(thrown_by([&] { first.regroup(); }).code == ErrorCode::kCommunication);
    if (first.rank() == 0) return;  // the rank that served the meeting may leave
    const Rendezvous third = second.regroup();
    CHECK(third.generation() == 3);
    CHECK(third.members() == std::vector<int>{1, 3, 4});
    CHECK(hear_each_other(third));
    right += 1;
  });
  CHECK(right == 3);
}

TEST_CASE("a rank that is left out learns that the others go on without it") {
  std::atomic<int> done = 0, out = 0;
  test::on_meeting(4, [&](const Rendezvous& first) {
    CHECK(hear_each_other(first));
    if (first.rank() == 3) {
      CHECK(comes_true([&] { return done == 3; }));
      const Thrown thrown = thrown_by([&] { first.regroup(); });
      CHECK(thrown.code == ErrorCode::kCommunication);
      out += thrown.text.find("leaves this rank out and continues without it") != std::string::npos;
      return;
    }
    // Rank 3 is alive and silent. One rank reports it as late, and the others wait for it.
    RegroupOptions options;
    options.deadline = 2s;
    if (first.rank() == 1) options.without = {3};
    const Clock::time_point begin = Clock::now();
    const Rendezvous second = first.regroup(options);
    CHECK(Clock::now() - begin < 1s);  // no rank waited for half of the deadline
    CHECK(second.members() == std::vector<int>{0, 1, 2});
    CHECK(hear_each_other(second));
    done += 1;
    CHECK(comes_true([&] { return out == 1; }));
  });
  CHECK(out == 1);
}

TEST_CASE("who leaves one of the others out keeps them from nothing where they leave it out") {
  std::atomic<int> done = 0, out = 0;
  test::on_meeting(4, [&](const Rendezvous& first) {
    CHECK(hear_each_other(first));
    if (first.rank() == 3) {  // it was stopped, for example, and takes rank 0 for the late rank
      const Thrown thrown = thrown_by([&] { first.regroup({.without = {0}, .deadline = 5s}); });
      CHECK(thrown.code == ErrorCode::kCommunication);
      out += thrown.text.find("leaves this rank out and continues without it") != std::string::npos;
      CHECK(comes_true([&] { return done == 3; }));
      return;
    }
    CHECK(comes_true([&] { return first.states()[2].gone; }));  // its list has arrived
    const Rendezvous second = first.regroup({.without = {3}, .deadline = 5s});
    CHECK(second.members() == std::vector<int>{0, 1, 2});
    CHECK(hear_each_other(second));
    done += 1;
    CHECK(comes_true([&] { return out == 1; }));
  });
  CHECK(out == 1);
}

TEST_CASE("a rank that takes all others for lost does not go on alone where they leave it out") {
  std::atomic<int> done = 0, out = 0;
  test::on_meeting(3, [&](const Rendezvous& first) {
    CHECK(hear_each_other(first));
    if (first.rank() != 0) {
      const Rendezvous second = first.regroup({.without = {0}, .deadline = 5s});
      CHECK(hear_each_other(second));
      done += 1;
      return;
    }
    CHECK(comes_true([&] { return done == 2; }));
    CHECK(comes_true([&] { return first.states()[0].gone && first.states()[1].gone; }));
    const Thrown thrown = thrown_by([&] { first.regroup({.without = {1, 2}}); });
    CHECK(thrown.code == ErrorCode::kCommunication);
    out += thrown.text == "rank 1 of 3 leaves this rank out and continues without it";
  });
  CHECK(out == 1);
}

TEST_CASE("a rank that tells much at once is not taken for one whose peers read nothing") {
  test::on_meeting(3, [&](const Rendezvous& ranks) {
    CHECK(hear_each_other(ranks));
    exchange::Control& control = *ranks.impl()->control;
    std::vector<exchange::Channel*> channels;
    for (int i = 0; i < 60; ++i) channels.push_back(control.open_channel(nullptr));
    for (exchange::Channel* const channel : channels) control.leave_channel(channel);
    CHECK(hear_each_other(ranks));
    for (const exchange::Control::Known& one : control.known(channels.back())) {
      CHECK(!one.dead);
      CHECK(one.state.gone);
    }
    CHECK(hear_each_other(ranks));
    for (exchange::Channel* const channel : channels) control.close_channel(channel);
  });
}

TEST_CASE("ranks that do not come to regroup are left out at half of the deadline") {
  std::atomic<int> done = 0;
  test::on_meeting(3, [&](const Rendezvous& first) {
    CHECK(hear_each_other(first));
    if (first.rank() == 0) {
      CHECK(comes_true([&] { return done == 2; }));
      return;
    }
    const Clock::time_point begin = Clock::now();
    const Rendezvous second = first.regroup({.without = {}, .deadline = 600ms});
    CHECK(Clock::now() - begin >= 200ms);  // the others may have begun earlier
    CHECK(second.members() == std::vector<int>{1, 2});
    CHECK(hear_each_other(second));
    done += 1;
  });
  CHECK(done == 2);
}

// The ranks of one part of a ring of six. The ring was cut, so they have lost the others.
TEST_CASE("of two parts of a ring at most one goes on, unless the caller lets both") {
  struct Case {
    std::vector<int> part;
    int at_least;
    bool goes_on;
  };
  const Case cases[] = {
      {{0, 1, 2, 3}, 0, true}, {{4, 5}, 0, false},    {{1, 3, 4, 5}, 0, true}, {{0, 2}, 0, false},
      {{0, 1, 2}, 0, true},    {{3, 4, 5}, 0, false}, {{0, 1, 2}, 3, true},    {{3, 4, 5}, 3, true},
  };
  std::set<std::uint64_t> digests;
  std::mutex mutex;
  for (const Case& one : cases) {
    CAPTURE(one.part);
    std::atomic<int> done = 0;
    test::on_meeting(6, [&](const Rendezvous& first) {
      CHECK(hear_each_other(first));
      if (std::ranges::find(one.part, first.rank()) == one.part.end()) return;
      const Thrown thrown = thrown_by([&] {
        const Rendezvous second = first.regroup({.without = {}, .at_least = one.at_least});
        CHECK(second.generation() == 2);
        CHECK(second.members() == one.part);
        CHECK(hear_each_other(second));
        const std::lock_guard lock(mutex);
        digests.insert(second.members_digest());
      });
      if (one.goes_on) CHECK(thrown.text == "");
      if (!one.goes_on) {
        CHECK(thrown.code == ErrorCode::kCommunication);
        CHECK(thrown.text.find(" of 6 ranks are left, and more than half have to be, or half with "
                               "rank 0") != std::string::npos);
      }
      done += 1;  // a rank that ends counts as gone for the others
      CHECK(comes_true([&] { return done == static_cast<int>(one.part.size()); }));
    });
  }
  CHECK(digests.size() == 4);  // {0, 1, 2} has the same digest twice
}

TEST_CASE("too few ranks, ranks that are none and deadlines that are none are refused") {
  test::on_meeting(2, [&](const Rendezvous& first) {
    CHECK(hear_each_other(first));
    CHECK(thrown_by([&] { first.regroup({.without = {}, .deadline = 0ms}); }).code ==
          ErrorCode::kInvalidArgument);
    CHECK(thrown_by([&] { first.regroup({.without = {2}}); }).code == ErrorCode::kInvalidArgument);
    CHECK(thrown_by([&] { first.regroup({.without = {}, .at_least = -1}); }).code ==
          ErrorCode::kInvalidArgument);
    const Thrown blamed = thrown_by([&] { first.regroup({.without = {first.rank()}}); });
    CHECK(blamed.code == ErrorCode::kCommunication);
    CHECK(blamed.text.find("it was at fault, and the others continue without it") !=
          std::string::npos);
    CHECK(hear_each_other(first));
    if (first.rank() == 1) return;
    const Thrown thrown = thrown_by([&] { first.regroup({.without = {}, .at_least = 2}); });
    CHECK(thrown.code == ErrorCode::kCommunication);
    CHECK(thrown.text == "1 of 2 ranks are left, and at least 2 have to be");
    const Rendezvous alone = first.regroup();
    CHECK(alone.ranks() == 1);
    CHECK(hear_each_other(alone));
  });
}

}  // namespace
}  // namespace annulus
