#include "tuned/entry_index.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <tuple>
#include <utility>

namespace annulus::tuned {
namespace {

// The difference between two problems with the same head dims and dtype, in steps of half a power
// of two of a length. A different mask or score counts as several steps.
int unlikeness(const ShapeKey& a, const ShapeKey& b) {
  const auto log = [](int value) {
    return static_cast<int>(std::bit_width(static_cast<unsigned>(value)));
  };
  constexpr int kOther = 4;
  return std::abs(a.queries - b.queries) + std::abs(a.keys - b.keys) +
         std::abs(a.density - b.density) + 2 * std::abs(a.heads - b.heads) +
         2 * std::abs(log(a.group) - log(b.group)) + (a.pattern != b.pattern ? kOther : 0) +
         (a.score != b.score ? kOther : 0) + (a.expression != b.expression ? kOther : 0) +
         (a.carry_in != b.carry_in ? 1 : 0) + (a.carry_out != b.carry_out ? 1 : 0);
}

}  // namespace

ShapeKey EntryIndex::kind_of(ShapeKey shape) {
  shape.queries = shape.keys = 0;
  return shape;
}

// The first slot that is not before these lengths.
EntryIndex::Kind::const_iterator EntryIndex::first_from(const Kind& kind, int queries, int keys) {
  return std::ranges::lower_bound(kind, std::pair(queries, keys), {}, [](const Slot& slot) {
    return std::pair(slot.queries, slot.keys);
  });
}

bool EntryIndex::goes_first(const Kept& a, const Kept& b) const {
  const auto rank = [&](const Kept& kept) {
    return std::tuple(kept.place, !kept.entry.complete,
                      kept.entry.origin.driver_version / 1000 != driver_);
  };
  if (rank(a) != rank(b)) return rank(a) < rank(b);
  return better(a.entry, b.entry);
}

void EntryIndex::put(Kept kept) {
  const Kept* there = exact(kept.entry.shape);
  if (there == nullptr || goes_first(kept, *there)) replace(std::move(kept));
}

void EntryIndex::replace(Kept kept) {
  const ShapeKey shape = kept.entry.shape;
  Kind& kind = kinds_[kind_of(shape)];
  auto at = kind.begin() + (first_from(kind, shape.queries, shape.keys) - kind.begin());
  if (at == kind.end() || at->queries != shape.queries || at->keys != shape.keys) {
    at = kind.insert(at, Slot{shape.queries, shape.keys, nullptr});
  }
  at->kept = std::make_unique<Kept>(std::move(kept));
}

void EntryIndex::erase(const ShapeKey& shape) {
  const auto kind = kinds_.find(kind_of(shape));
  if (kind == kinds_.end()) return;
  const auto at = first_from(kind->second, shape.queries, shape.keys);
  if (at == kind->second.end() || at->queries != shape.queries || at->keys != shape.keys) return;
  kind->second.erase(at);
  if (kind->second.empty()) kinds_.erase(kind);
}

const Kept* EntryIndex::exact(const ShapeKey& shape) const {
  const auto kind = kinds_.find(kind_of(shape));
  if (kind == kinds_.end()) return nullptr;
  const auto at = first_from(kind->second, shape.queries, shape.keys);
  if (at == kind->second.end() || at->queries != shape.queries || at->keys != shape.keys) {
    return nullptr;
  }
  return at->kept.get();
}

EntryIndex::Near EntryIndex::nearest(const ShapeKey& shape) const {
  Near near;
  const auto kind = kinds_.find(kind_of(shape));
  if (kind == kinds_.end()) return near;
  auto best = std::tuple(kMaxDistance + 1, 0, 0);
  for (int apart = -kMaxDistance; apart <= kMaxDistance; ++apart) {
    const int queries = shape.queries + apart;
    const int left = kMaxDistance - std::abs(apart);  // the remaining distance for the keys
    for (auto at = first_from(kind->second, queries, shape.keys - left);
         at != kind->second.end() && at->queries == queries && at->keys <= shape.keys + left;
         ++at) {
      const int distance = std::abs(apart) + std::abs(at->keys - shape.keys);
      const auto rank = std::tuple(distance, std::abs(apart), -at->queries - at->keys);
      if (rank >= best) continue;
      best = rank;
      near = {at->kept.get(), distance};
    }
  }
  return near;
}

std::vector<attention::KernelConfig> EntryIndex::winners(const ShapeKey& shape,
                                                         std::size_t most) const {
  std::vector<std::pair<int, const Kept*>> order;
  for (const auto& [kind, slots] : kinds_) {
    if (kind.dim_qk != shape.dim_qk || kind.dim_v != shape.dim_v || kind.dtype != shape.dtype) {
      continue;
    }
    for (const Slot& slot : slots) {
      order.emplace_back(unlikeness(slot.kept->entry.shape, shape), slot.kept.get());
    }
  }
  std::ranges::stable_sort(order, {}, &std::pair<int, const Kept*>::first);
  std::vector<attention::KernelConfig> configs;
  const auto add = [&](const attention::KernelConfig& config) {
    if (configs.size() < most && std::ranges::find(configs, config) == configs.end()) {
      configs.push_back(config);
    }
  };
  for (const auto& [steps, kept] : order) {
    add(kept->entry.config);
    if (kept->entry.runner_up) add(*kept->entry.runner_up);
  }
  return configs;
}

}  // namespace annulus::tuned
