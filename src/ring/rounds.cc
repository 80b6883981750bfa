#include "ring/rounds.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

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

Rounds direct_rounds(const Demand& demand) {
  Rounds rounds;
  rounds.route = Route::kDirect;
  rounds.packed.resize(static_cast<std::size_t>(demand.ranks()));
  route_directly(demand, &rounds);
  count(demand, &rounds);
  return rounds;
}

Rounds ring_rounds(const Demand& demand, const RingRoute& route) {
  Rounds rounds;
  rounds.route = Route::kRing;
  route.write(&rounds);
  count(demand, &rounds);
  return rounds;
}

RouteSize size_of(const Rounds& rounds) {
  RouteSize size = {rounds.rows_sent, rounds.rounds.size(), 0};
  for (int rank = 0; rank < rounds.ranks(); ++rank) {
    size.max_held = std::max(size.max_held, rounds.held_rows(rank));
  }
  return size;
}

std::string text_of(const RouteSize& size) {
  return fmt::format("{} rows in {} round{}, at most {} held", size.rows_sent, size.rounds,
                     size.rounds == 1 ? "" : "s", size.max_held);
}

// Whether `direct` is preferred, by the rule of make_rounds().
bool prefer_direct(const RouteSize& direct, const RouteSize& ring) {
  const auto much_more = [](std::int64_t a, std::int64_t b) { return a > b + b / 50; };
  if (much_more(ring.rows_sent, direct.rows_sent)) return true;
  if (much_more(direct.rows_sent, ring.rows_sent)) return false;
  return std::pair(direct.rounds, direct.max_held) <= std::pair(ring.rounds, ring.max_held);
}

}  // namespace

std::int64_t max_held_rows(std::int64_t largest_shard, std::int64_t packed_rows) {
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
    base::charge(std::ssize(round));
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
    Rounds rounds =
        route == Route::kRing ? ring_rounds(demand, RingRoute(demand)) : direct_rounds(demand);
    rounds.reason = fmt::format("{} was requested: {}", to_string(route), text_of(size_of(rounds)));
    return rounds;
  }
  Rounds direct = direct_rounds(demand);
  if (direct.messages == 0) {
    direct.reason = "direct: no rank needs a row of another";
    return direct;
  }
  const RouteSize size = size_of(direct);
  // A ring route takes at least one round for each hop, and sends at least the rows that are
  // needed.
  if (size.rounds <= static_cast<std::size_t>(farthest(demand))) {
    direct.reason = fmt::format("direct: {}; a ring takes no fewer rounds", text_of(size));
    return direct;
  }
  const RingRoute around(demand);
  if (prefer_direct(size, around.size())) {
    direct.reason = fmt::format("direct: {}; a ring: {}", text_of(size), text_of(around.size()));
    return direct;
  }
  direct = {};
  Rounds ring = ring_rounds(demand, around);
  ring.reason = fmt::format("ring: {}; direct: {}", text_of(around.size()), text_of(size));
  return ring;
}

}  // namespace annulus::ring
