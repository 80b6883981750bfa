#include "ring/local_ring.h"

#include <cstdint>
#include <utility>

#include "base/fail.h"
#include "base/span.h"
#include "ring/rank_error.h"
#include "ring/turn.h"

namespace annulus::ring {
LocalRing::LocalRing(PlannedRing plan, std::span<const RankDevice> devices)
    : plan_(std::move(plan)),
      drivers_(make_drivers(&plan_, devices)),
      transport_(make_transport(plan_, devices)) {}

std::vector<RankDriver> LocalRing::make_drivers(PlannedRing* plan,
                                                std::span<const RankDevice> devices) {
  const int rounds = static_cast<int>(plan->world.rounds.rounds.size());
  std::vector<RankDriver> drivers;
  drivers.reserve(plan->ranks.size());
  for (int rank = 0; rank < plan->world.ranks(); ++rank) {
    RankPlan& own = plan->ranks[static_cast<std::size_t>(rank)];
    std::vector<attention::LaunchPlan> launches = std::move(own.launches);
    own.launches.clear();
    RankPlan taken = own;
    taken.launches = std::move(launches);
    of_rank(rank, [&] {
      drivers.emplace_back(std::move(taken), rounds, devices[static_cast<std::size_t>(rank)]);
    });
  }
  return drivers;
}

LocalTransport LocalRing::make_transport(const PlannedRing& plan,
                                         std::span<const RankDevice> devices) {
  std::vector<device::ContextPointer> contexts;
  for (const RankDevice& device : devices) contexts.push_back(device.context);
  std::vector<const RankSchedule*> schedules;
  for (const RankPlan& rank : plan.ranks) schedules.push_back(&rank.schedule);
  return {contexts, schedules, static_cast<int>(plan.world.rounds.rounds.size())};
}

void LocalRing::check(std::span<const RingCall> calls) const {
  if (calls.size() != drivers_.size()) {
    base::fail(ErrorCode::kInvalidArgument, "{} calls for a ring of {} ranks; give one for each",
               calls.size(), drivers_.size());
  }
  for (std::size_t rank = 0; rank < calls.size(); ++rank) {
    const RingCall& call = calls[rank];
    of_rank(static_cast<int>(rank), [&] { drivers_[rank].check(call); });
  }
  // Ranks that shared a workspace would overwrite each other's data without an error. Device
  // addresses are unique in a process, so comparing them suffices.
  const auto begin = [&](std::size_t rank) {
    return reinterpret_cast<std::uintptr_t>(calls[rank].workspace);
  };
  const auto end = [&](std::size_t rank) {
    return begin(rank) + static_cast<std::uintptr_t>(plan_.ranks[rank].workspace.bytes);
  };
  for (std::size_t a = 0; a < calls.size(); ++a) {
    for (std::size_t b = a + 1; b < calls.size(); ++b) {
      if (begin(a) >= end(b) || begin(b) >= end(a)) continue;
      base::fail(ErrorCode::kInvalidArgument,
                 "the workspaces of rank {} and rank {} overlap; give each rank one of its own", a,
                 b);
    }
  }
}

void LocalRing::run(std::span<const RingCall> calls) const {
  const base::Span span("ring run");
  try {
    queue(calls);
  } catch (...) {
    for (const RankDriver& rank : drivers_) {
      rank.context()->tally().add(base::Count::ring_runs_failed);
    }
    throw;
  }
  for (const RankDriver& rank : drivers_) {
    rank.context()->tally().add(base::Count::ring_runs);
    rank.context()->tally().add(base::Count::ring_sent_bytes, rank.sent_bytes());
  }
}

// Work is queued step by step for all ranks, exchanges before launches, so that the copies of round
// s run at the same time as the launches for the rows of the round before.
void LocalRing::queue(std::span<const RingCall> calls) const {
  check(calls);
  const base::Turn turn(&busy_, kOneRunAtATime);
  const auto each = [&](auto f) {
    for (std::size_t rank = 0; rank < drivers_.size(); ++rank) {
      of_rank(static_cast<int>(rank),
              [&] { f(drivers_[rank], calls[rank], static_cast<int>(rank)); });
    }
  };
  each([](const RankDriver& rank, const RingCall& call, int) { rank.begin(call); });
  for (int step = 0; step <= rounds(); ++step) {
    if (step < rounds()) {
      each([&](const RankDriver& rank, const RingCall& call, int number) {
        rank.exchange(call, step, transport_.end_of(number));
      });
      transport_.complete(step);
      each([&](const RankDriver& rank, const RingCall&, int) { rank.exchanged(step); });
    }
    each([&](const RankDriver& rank, const RingCall& call, int) { rank.compute(call, step - 1); });
  }
  each([](const RankDriver& rank, const RingCall& call, int) { rank.end(call); });
}

}  // namespace annulus::ring
