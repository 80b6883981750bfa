#include "ring/rounds.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <tuple>

#include "base/work.h"
#include "ring/routes.h"

namespace annulus::ring {
namespace {

void count(const Demand& demand, Rounds* rounds) {
  for (int rank = 0; rank < demand.ranks(); ++rank) {
    for (const Need& need : demand.needs.of(rank)) {
      if (need.owner == rank) continue;
      rounds->rows_needed += pattern::size(need.rows) - need.unneeded;
      rounds->rows_unneeded += need.unneeded;
    }
  }
  for (const std::vector<Message>& round : rounds->rounds) {
    rounds->messages += std::ssize(round);
    for (const Message& message : round) rounds->rows_sent += message.rows;
  }
  rounds->rows_relayed = rounds->rows_sent - rounds->rows_needed - rounds->rows_unneeded;
}

Rounds make_route(const Demand& demand, Route route) {
  Rounds rounds;
  rounds.route = route;
  rounds.packed.resize(static_cast<std::size_t>(demand.ranks()));
  route == Route::kRing ? route_around(demand, &rounds) : route_directly(demand, &rounds);
  count(demand, &rounds);
  return rounds;
}

std::int64_t most_held(const Rounds& rounds) {
  std::int64_t most = 0;
  for (int rank = 0; rank < rounds.ranks(); ++rank) most = std::max(most, rounds.held_rows(rank));
  return most;
}

std::string numbers(const Rounds& rounds) {
  const std::size_t count = rounds.rounds.size();
  return fmt::format("{} rows in {} round{}, at most {} held", rounds.rows_sent, count,
                     count == 1 ? "" : "s", most_held(rounds));
}

// Whether `direct` is to be preferred, by the rule of make_rounds.
bool prefer_direct(const Rounds& direct, const Rounds& ring) {
  const auto much_more = [](std::int64_t a, std::int64_t b) { return a > b + b / 50; };
  if (much_more(ring.rows_sent, direct.rows_sent)) return true;
  if (much_more(direct.rows_sent, ring.rows_sent)) return false;
  return std::pair(direct.rounds.size(), most_held(direct)) <=
         std::pair(ring.rounds.size(), most_held(ring));
}

}  // namespace

std::int64_t most_held_rows(std::int64_t largest_shard, std::int64_t packed_rows) {
  return std::max(2 * largest_shard, packed_rows + 4);
}

std::int64_t grain_of(std::int64_t slot_rows) {
  std::int64_t grain = 128;
  while (grain > 1 && slot_rows < 16 * grain) grain /= 2;
  return grain;
}

int farthest(const Demand& demand) {
  int most = 0;
  for (int rank = 0; rank < demand.ranks(); ++rank) {
    for (const Need& need : demand.needs.of(rank)) {
      const int apart = std::abs(rank - need.owner);
      most = std::max(most, std::min(apart, demand.ranks() - apart));
    }
  }
  return most;
}

void place(Rounds* rounds) {
  rounds->slot_rows.assign(rounds->packed.size(), {0, 0});
  for (std::size_t t = 0; t < rounds->rounds.size(); ++t) {
    std::vector<Message>& round = rounds->rounds[t];
    base::charge(2 * std::ssize(round) * std::bit_width(round.size()));
    std::ranges::sort(round, {}, [](const Message& message) {
      return std::tuple(message.to, message.owner, message.first);
    });
    std::int64_t row = 0;
    for (std::size_t i = 0; i < round.size(); ++i) {
      if (i > 0 && round[i].to != round[i - 1].to) row = 0;
      round[i].to_row = row;
      row += round[i].rows;
      std::int64_t& slot = rounds->slot_rows[static_cast<std::size_t>(round[i].to)][t % 2];
      slot = std::max(slot, row);
    }
  }
}

Rounds make_rounds(const Needs& needs, const std::vector<std::int64_t>& shard_rows, Route route) {
  const Demand demand = {needs, shard_rows.empty() ? 0 : std::ranges::max(shard_rows)};
  if (route != Route::kAuto) {
    Rounds rounds = make_route(demand, route);
    rounds.reason = fmt::format("{} was asked for: {}", to_string(route), numbers(rounds));
    return rounds;
  }
  Rounds direct = make_route(demand, Route::kDirect);
  if (direct.messages == 0) {
    direct.reason = "direct: no rank needs a row of another";
    return direct;
  }
  // A ring takes a round for each hop, and sends no fewer rows than are needed.
  const int hops = farthest(demand);
  if (direct.rounds.size() <= static_cast<std::size_t>(hops)) {
    direct.reason = fmt::format("direct: {}; a ring takes no fewer rounds", numbers(direct));
    return direct;
  }
  Rounds ring = make_route(demand, Route::kRing);
  const bool takes_direct = prefer_direct(direct, ring);
  std::string reason = takes_direct
                           ? fmt::format("direct: {}; a ring: {}", numbers(direct), numbers(ring))
                           : fmt::format("ring: {}; direct: {}", numbers(ring), numbers(direct));
  Rounds& taken = takes_direct ? direct : ring;
  taken.reason = std::move(reason);
  return std::move(taken);
}

}  // namespace annulus::ring
