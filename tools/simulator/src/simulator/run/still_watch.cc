#include "simulator/run/still_watch.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "simulator/machine/cta.h"

namespace annulus::simulator {
namespace {

class Hash {
 public:
  void add(std::uint64_t word) {
    value_ = (value_ ^ word) * 0x9e3779b97f4a7c15u;
    value_ ^= value_ >> 29;
  }
  void add(const std::byte* bytes, std::size_t count) {
    for (; count >= 8; bytes += 8, count -= 8) {
      std::uint64_t word;
      std::memcpy(&word, bytes, 8);
      add(word);
    }
    for (; count > 0; ++bytes, --count) add(std::to_integer<std::uint64_t>(*bytes));
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

std::uint64_t state(const Warp& warp) {
  Hash hash;
  hash.add(warp.registers, warp.cta->program->register_bytes);
  hash.add(warp.local.data(), warp.local.size());
  hash.add(warp.carry);
  hash.add(std::uint64_t{warp.spun} << 32 | warp.preferred);
  for (const Group& group : warp.groups) {
    hash.add(std::uint64_t{group.mask} << 32 | group.pc);
    hash.add(std::uint64_t{group.depth} << 16 | std::uint64_t{group.gives_way} << 8 |
             static_cast<std::uint64_t>(group.state));
    for (std::size_t i = 0; i < group.depth; ++i) hash.add(group.returns[i]);
  }
  return hash.value();
}

// A number that rises with everything that a warp of any cluster could observe.
std::uint64_t activity(const Cluster& cluster) {
  std::uint64_t sum = cluster.events;
  for (const auto& cta : cluster.ctas) sum += cta->activity();
  return sum;
}

}  // namespace

// A kernel that reads a clock is not watched, because a clock continues while a warp polls.
StillWatch::StillWatch(const LaunchRequest& request)
    : able_(!request.has_company && !request.program->reads_clock) {}

void StillWatch::start(const Cluster& cluster) {
  Watched& watched = watched_[&cluster];
  watched.activity = activity(cluster);
  watched.warps.assign(cluster.ctas.size() * cluster.ctas.front()->warp_count(), {});
  changed_ = turn_;
}

void StillWatch::end(const Cluster& cluster) {
  watched_.erase(&cluster);
  changed_ = turn_;
}

bool StillWatch::turned(const Cluster& cluster) {
  if (!able_) return false;
  ++turn_;
  Watched& watched = watched_.at(&cluster);
  const std::uint64_t now = activity(cluster);
  if (now != watched.activity) {
    watched.activity = now;
    changed_ = turn_;
    return false;
  }
  // A running kernel changes something every few turns. Then there is nothing to check.
  constexpr std::uint64_t kQuiet = 64;
  if (turn_ - changed_ < kQuiet * watched_.size()) return false;
  const Warp& warp = *cluster.running;
  // A warp that did nothing has the same state as before, which proves nothing.
  if (warp.stood) return false;
  return look(warp, watched.warps[warp.agent]) && all_proven();
}

// Compares with a stored state, which is replaced after a number of turns that doubles each time.
// So the stored state is a state of the loop after some time, whatever came before the loop and
// however many turns a round takes.
bool StillWatch::look(const Warp& warp, Seen& seen) const {
  // The last warp that did anything else may have exited since then.
  constexpr std::uint64_t kAgain = 256;
  if (seen.proven > changed_) return turn_ % kAgain == 0;
  const std::uint64_t now = state(warp);
  if (seen.turn > changed_ && seen.state == now) {
    seen.proven = turn_;
    return true;
  }
  const bool fresh = seen.turn > changed_;
  if (fresh && ++seen.misses < seen.patience) return false;
  seen.patience = fresh ? 2 * seen.patience : Seen{}.patience;
  seen.state = now;
  seen.turn = turn_;
  seen.misses = 0;
  return false;
}

// A copy that is under way will change something when it lands.
bool StillWatch::all_proven() const {
  for (const auto& [cluster, watched] : watched_) {
    if (cluster->copies.under_way()) return false;
    for (const auto& cta : cluster->ctas) {
      for (const Warp& warp : cta->warps) {
        if (!warp.copies.empty()) return false;
        if (can_run(warp) && watched.warps[warp.agent].proven <= changed_) return false;
      }
    }
  }
  return true;
}

}  // namespace annulus::simulator
