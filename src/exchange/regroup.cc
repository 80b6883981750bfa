// How the remaining ranks continue: Control::regroup.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "base/turn.h"
#include "exchange/control.h"
#include "exchange/names.h"

namespace annulus::exchange {

using namespace std::chrono_literals;

// Passes to `survivors` what the peers have sent about the next generation.
void Control::judge(Survivors* survivors) const {
  for (const Peer& peer : peers_) {
    if (peer.rank == rank_) continue;
    if (peer.decided) {
      survivors->decided(peer.rank, *peer.decided);
      continue;
    }
    if (peer.gone) survivors->gone(peer.rank);
    // The list of a rank that has gone matters only if it leaves this rank out.
    if (peer.survivors) survivors->heard(peer.rank, *peer.survivors);
  }
}

// The caller holds the lock. `members` is the same on all members.
World Control::move_on(const std::vector<int>& members) {
  World world;
  world.generation = generation_ + 1;
  world.ranks = static_cast<int>(members.size());
  world.links.resize(members.size());
  const std::vector<std::byte> list = encode_list(members);
  for (int number = 0; number < world.ranks; ++number) {
    const int rank = members[static_cast<std::size_t>(number)];
    Peer& peer = peers_[static_cast<std::size_t>(rank)];
    world.members.push_back(members_[static_cast<std::size_t>(rank)]);
    if (rank == rank_) {
      world.rank = number;
      continue;
    }
    if (!peer.link.is_open()) continue;
    if (!peer.decided) world.to_say.push_back(number);
    peer.link.put(
        encode(FrameKind::kGeneration, static_cast<std::uint64_t>(world.generation), list));
    world.links[static_cast<std::size_t>(number)] = std::exchange(peer.link, Link());
    peer.gone = true;
    peer.reason = fmt::format("it has continued as {} of generation {}",
                              name_ranks({&number, 1}, world.ranks), world.generation);
  }
  ended_ = fmt::format("the ranks have continued as generation {} without this object",
                       world.generation);
  ring_all();
  if (ranks_ > 1) wake();
  return world;
}

// Throws if the members are too few. The rule allows only one part of the ranks to continue: two
// disjoint parts never both satisfy it.
void Control::require_enough(const std::vector<int>& members, int at_least) const {
  const auto left = static_cast<int>(members.size());
  if (at_least > 0) {
    if (left >= at_least) return;
    base::fail(ErrorCode::kCommunication, "{} of {} ranks are left, and at least {} have to be",
               left, ranks_, at_least);
  }
  if (2 * left > ranks_ || (2 * left == ranks_ && members.front() == 0)) return;
  base::fail(ErrorCode::kCommunication,
             "{} of {} ranks are left, and more than half have to be, or half with rank 0: the "
             "others may continue without these. If the others have died, set "
             "RegroupOptions::at_least to continue",
             left, ranks_);
}

World Control::regroup(const RegroupOptions& options) {
  const base::Turn turn(&busy_, "another thread is inside a gather of this rendezvous; take turns");
  if (options.deadline < 1ms || options.deadline > kLongestDeadline) {
    base::fail(ErrorCode::kInvalidArgument,
               "a deadline of {} ms for ranks to regroup; give 1 ms to a day",
               options.deadline.count());
  }
  for (const int rank : options.without) {
    if (rank >= 0 && rank < ranks_) continue;
    base::fail(ErrorCode::kInvalidArgument, "rank {} cannot be left out of {} ranks", rank, ranks_);
  }
  if (options.at_least < 0) {
    base::fail(ErrorCode::kInvalidArgument,
               "at_least is {}; give a number of ranks, or 0 for more than half of them",
               options.at_least);
  }
  if (std::ranges::find(options.without, rank_) != options.without.end()) {
    base::fail(ErrorCode::kCommunication,
               "rank {} of {} is among those that are left out: it was at fault, and the others "
               "continue without it",
               rank_, ranks_);
  }
  const SteadyClock::time_point begin = SteadyClock::now();
  const SteadyClock::time_point half = begin + options.deadline / 2;
  const SteadyClock::time_point end = begin + options.deadline;
  std::unique_lock lock(mutex_);
  Survivors survivors(rank_, ranks_, options.without);
  while (true) {
    if (ended_) throw Error(ErrorCode::kCommunication, *ended_);
    judge(&survivors);
    const SteadyClock::time_point now = SteadyClock::now();
    if (now >= half) survivors.leave_out_silent();
    if (const std::optional<int> by = survivors.left_out_by()) {
      throw Error(ErrorCode::kCommunication, left_out_text(*by));
    }
    const std::vector<int>& members = survivors.members();
    require_enough(members, options.at_least);
    if (survivors.take_change()) {
      say_to_all(FrameKind::kSurvivors, static_cast<std::uint64_t>(generation_) + 1,
                 encode_list(members));
    }
    if (survivors.agreed()) return move_on(members);
    if (now >= end) {
      const std::vector<int> awaited = survivors.awaited();
      base::fail(ErrorCode::kCommunication,
                 "{} {} not agreed within {} ms on the ranks that continue",
                 name_ranks(awaited, ranks_), have(awaited), options.deadline.count());
    }
    came_.wait_until(lock, now < half ? half : end);
  }
}

}  // namespace annulus::exchange
