#include "pattern/striped.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <utility>

#include "base/work.h"
#include "pattern/batches.h"
#include "pattern/node.h"
#include "pattern/positions.h"

namespace annulus::pattern {
namespace {

constexpr std::int64_t kMaxPeriodOfBits = 64;

// The number of keys after which a leaf repeats along a row; 0 if it does not repeat, or if it has
// few intervals.
std::int64_t period_of(const Node& node) {
  if (node.kind != Kind::kLeaf) return 0;
  const std::optional<leaves::Stripes> stripes = leaves::stripes_of(node.leaf, 0, 0);
  return stripes ? stripes->period : 0;
}

}  // namespace

StripedCounter::StripedCounter(const Pattern& pattern, const PatternContext& context)
    : pattern_(of_batch(pattern, context)), context_(context) {
  add(pattern_.node());
  every_ = ~std::uint64_t{0} >> (64 - period_);
}

std::size_t StripedCounter::add(const Node& node) {
  Step step;
  step.node = &node;
  for (const NodePointer& child : node.children) step.children.push_back(add(*child));
  const std::int64_t period = period_of(node);
  if (period > 0 && period <= kMaxPeriodOfBits) {
    const std::int64_t common = std::lcm(period_, period);
    // Otherwise the keys of this leaf are evaluated one by one.
    if (common <= kMaxPeriodOfBits) period_ = common;
  }
  steps_.push_back(std::move(step));
  return steps_.size() - 1;
}

bool StripedCounter::is_striped(const Node& leaf) const {
  const std::int64_t period = period_of(leaf);
  return period > 0 && period_ % period == 0;
}

// The residues of keys begin, ..., begin + width - 1 and of keys that are whole periods away from
// them.
std::uint64_t StripedCounter::residues_of(std::int64_t begin, std::int64_t period,
                                          std::int64_t width) const {
  std::uint64_t residues = 0;
  for (std::int64_t first = 0; first < period_; first += period) {
    for (std::int64_t i = 0; i < width; ++i) {
      residues |= std::uint64_t{1} << (floor_mod(begin, period_) + first + i) % period_;
    }
  }
  return residues;
}

// Makes the pieces of one interval's keys with these residues, and of no other keys of the
// universe.
void StripedCounter::fill(Interval keys, std::uint64_t residues, Interval universe,
                          Pieces* out) const {
  keys = intersection(keys, universe);
  if (!keys.empty()) {
    if (keys.begin > universe.begin) out->push_back({keys.begin, 0});
    out->push_back({keys.end, residues});
  }
  if (keys.empty() || keys.end < universe.end) out->push_back({universe.end, 0});
}

void StripedCounter::find_striped(const Node& leaf, std::int64_t head, std::int64_t q,
                                  Interval universe, Pieces* out) {
  out->clear();
  const leaves::Stripes stripes = *leaves::stripes_of(leaf.leaf, head, q);
  fill(stripes.keys, residues_of(stripes.begin, stripes.period, stripes.width), universe, out);
}

// Joins two lists piece by piece; neighbours with the same residues become one piece.
void StripedCounter::join(bool is_and, const Pieces& a, const Pieces& b, Pieces* out) const {
  out->clear();
  for (auto x = a.begin(), y = b.begin(); x != a.end() && y != b.end();) {
    const std::int64_t end = std::min(x->end, y->end);
    const std::uint64_t residues = is_and ? x->residues & y->residues : x->residues | y->residues;
    if (!out->empty() && out->back().residues == residues) {
      out->back().end = end;
    } else {
      out->push_back({end, residues});
    }
    const bool step_x = x->end == end;
    if (y->end == end) ++y;
    if (step_x) ++x;
  }
}

// Finds the pieces of one query's keys. Within the intervals of a leaf without stripes, all
// residues are set; between them, none is.
void StripedCounter::find(Step& step, std::int64_t head, std::int64_t q, Interval universe) {
  const Node& node = *step.node;
  work_ += 4;
  if (step.children.empty()) {
    if (is_striped(node)) return find_striped(node, head, q, universe, &step.pieces);
    step.pieces.clear();
    leaves::keys_of(node.leaf, {head, context_, {q, q + 1}, universe}, Wanted::kAny, &keys_);
    work_ += std::ssize(keys_);
    std::int64_t at = universe.begin;
    for (const Interval& keys : keys_) {
      if (keys.begin > at) step.pieces.push_back({keys.begin, 0});
      step.pieces.push_back({keys.end, every_});
      at = keys.end;
    }
    if (at < universe.end) step.pieces.push_back({universe.end, 0});
    return;
  }
  const auto child = [&](std::size_t i) -> Pieces& {
    Step& at = steps_[step.children[i]];
    find(at, head, q, universe);
    return at.pieces;
  };
  if (node.kind == Kind::kHeads) return step.pieces.swap(child(child_of_head(node, head)));
  step.pieces.swap(child(0));
  if (node.kind == Kind::kNot) {
    for (Piece& piece : step.pieces) piece.residues ^= every_;
  }
  for (std::size_t i = 1; i < step.children.size(); ++i) {
    join(!is_union(node.kind), step.pieces, child(i), &scratch_);
    step.pieces.swap(scratch_);
    work_ += std::ssize(step.pieces);
  }
}

std::int64_t StripedCounter::count(std::int64_t head, std::int64_t q, Interval universe) {
  if (universe.empty()) return 0;
  work_ = 0;
  find(steps_.back(), head, q, universe);
  base::charge(work_ + std::ssize(steps_.back().pieces));
  std::int64_t total = 0;
  std::int64_t begin = universe.begin;
  for (const Piece& piece : steps_.back().pieces) {
    const std::int64_t length = piece.end - begin;
    total += length / period_ * std::popcount(piece.residues);
    const std::int64_t first = floor_mod(begin, period_);
    for (std::int64_t i = 0; i < length % period_; ++i) {
      total += static_cast<std::int64_t>(piece.residues >> (first + i) % period_ & 1u);
    }
    begin = piece.end;
  }
  return total;
}

}  // namespace annulus::pattern
