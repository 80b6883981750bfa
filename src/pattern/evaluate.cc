#include "pattern/evaluate.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/work.h"
#include "pattern/batches.h"
#include "pattern/node.h"
#include "pattern/rows_alike.h"

namespace annulus::pattern {
namespace {

// Whether the node's answer is always one or two intervals that are computed directly.
bool is_short(const Node& node) {
  return node.kind == Kind::kLeaf && leaves::structure_of(node.leaf).is_short;
}

// Steps of work (base/work.h) of a leaf's answer, in addition to one step for each of its
// intervals.
constexpr std::int64_t kStepsOfLeaf = 4;

std::int64_t intervals_of(const Bounds& bounds) {
  return std::ssize(bounds.all) + std::ssize(bounds.any) + std::ssize(bounds.doubt) +
         std::ssize(bounds.mixed);
}

// The interval from the first key to the last one.
Interval hull_of(const IntervalSet& keys) {
  return keys.empty() ? Interval{} : Interval{keys.front().begin, keys.back().end};
}

}  // namespace

Evaluator::Evaluator(const Pattern& pattern, const PatternContext& context)
    : pattern_(of_batch(pattern, context)), context_(context) {
  add(pattern_.node());
}

std::size_t Evaluator::add(const Node& node) {
  Step step;
  step.node = &node;
  for (const NodePointer& child : node.children) step.children.push_back(add(*child));
  if (node.kind == Kind::kAnd) {
    // An operand is evaluated only for the keys that the operands before it left, so the short
    // operands go first.
    std::stable_partition(step.children.begin(), step.children.end(),
                          [&](std::size_t child) { return is_short(*steps_[child].node); });
  }
  steps_.push_back(std::move(step));
  return steps_.size() - 1;
}

bool Evaluator::visible(std::int64_t head, std::int64_t q, std::int64_t k) const {
  return pattern::visible(pattern_.node(), head, q, k, context_);
}

const IntervalSet& Evaluator::row(std::int64_t head, std::int64_t q, Interval universe) {
  check_head(pattern_.node(), head);
  work_ = 0;
  find_row(steps_.back(), {head, {q, q + 1}, universe, 0});
  base::charge(work_);
  return steps_.back().row;
}

// Finds the exact keys of one query. An operand of & is evaluated only within the hull of the keys
// that the operands before it left, since other keys cannot be seen.
void Evaluator::find_row(Step& step, const Question& question) {
  const Node& node = *step.node;
  if (step.children.empty()) {
    leaves::keys_of(node.leaf, {question.head, context_, question.queries, question.universe},
                    Wanted::kAny, &step.row);
    work_ += kStepsOfLeaf + std::ssize(step.row);
    return;
  }
  const auto child = [&](std::size_t i) -> IntervalSet& {
    Step& at = steps_[step.children[i]];
    find_row(at, question);
    return at.row;
  };
  if (node.kind == Kind::kHeads) return step.row.swap(child(child_of_head(node, question.head)));
  if (node.kind == Kind::kNot) return complement(child(0), question.universe, &step.row);
  step.row.swap(child(0));
  if (is_union(node.kind)) {
    for (std::size_t i = 1; i < step.children.size(); ++i) {
      unite(step.row, child(i), &scratch_);
      step.row.swap(scratch_);
      work_ += 1 + std::ssize(step.row);
    }
    return;
  }
  for (std::size_t i = 1; i < step.children.size() && !step.row.empty(); ++i) {
    Step& next = steps_[step.children[i]];
    find_row(next, {question.head, question.queries, hull_of(step.row), question.grain});
    intersect(step.row, next.row, &scratch_);
    step.row.swap(scratch_);
    work_ += 1 + std::ssize(step.row);
  }
}

const Bounds& Evaluator::range(std::int64_t head, Interval queries, Interval universe,
                               std::int64_t grain) {
  check_head(pattern_.node(), head);
  work_ = 0;
  find_bounds(steps_.back(), {head, queries, universe, grain});
  base::charge(work_);
  return steps_.back().bounds;
}

// Finds the bounds of a range of queries. A leaf computes its own bounds; heads() takes the bounds
// of its child; an operand of & is evaluated only within the hull of what the operand before it
// sees; ~ swaps and complements `all` and `any` and keeps `doubt` and `mixed`, which are the same
// for both.
void Evaluator::find_bounds(Step& step, const Question& question) {
  const auto& [head, queries, universe, grain] = question;
  const Node& node = *step.node;
  Bounds& bounds = step.bounds;
  if (step.children.empty()) {
    const leaves::Question asked = {head, context_, queries, universe};
    work_ += kStepsOfLeaf;
    if (grain > 0 && leaves::coarse_keys_of(node.leaf, asked, grain,
                                            {&bounds.all, &bounds.any, &bounds.mixed})) {
      work_ += std::ssize(bounds.all) + std::ssize(bounds.any) + std::ssize(bounds.mixed);
      return subtract(bounds.any, bounds.all, &bounds.doubt);
    }
    bounds.doubt.clear();
    bounds.mixed.clear();
    leaves::keys_of(node.leaf, asked, Wanted::kAll, &bounds.all);
    work_ += std::ssize(bounds.all);
    if (sees_alike(node, queries)) {
      bounds.any = bounds.all;
      return;
    }
    leaves::keys_of(node.leaf, asked, Wanted::kAny, &bounds.any);
    work_ += std::ssize(bounds.any);
    return;
  }
  if (node.kind == Kind::kHeads) {
    Step& chosen = steps_[step.children[child_of_head(node, head)]];
    find_bounds(chosen, question);
    return std::swap(bounds, chosen.bounds);
  }
  Question left = question;
  for (const std::size_t child : step.children) {
    find_bounds(steps_[child], left);
    if (node.kind == Kind::kAnd) left.universe = hull_of(steps_[child].bounds.any);
  }
  if (node.kind != Kind::kNot) return fold(step);
  Bounds& child = steps_[step.children[0]].bounds;
  complement(child.any, universe, &bounds.all);
  complement(child.all, universe, &bounds.any);
  bounds.doubt.swap(child.doubt);
  bounds.mixed.swap(child.mixed);
}

// Joins the bounds of the operands of & and |. A key "differs" in an operand if some but not all
// queries see it through this operand. A key that differs in at most one operand, and there without
// doubt, is exact in the result: the other operands either decide it or leave the decision to that
// operand. A key that differs in two operands is added to `doubt`.
void Evaluator::fold(Step& step) {
  const bool is_and = !is_union(step.node->kind);
  const auto join = is_and ? intersect : unite;
  Bounds& bounds = step.bounds;
  std::swap(bounds, steps_[step.children[0]].bounds);
  doubts_ = bounds.doubt;
  subtract(bounds.any, bounds.all, &differ_once_);
  for (std::size_t i = 1; i < step.children.size(); ++i) {
    const Bounds& child = steps_[step.children[i]].bounds;
    work_ += 2 + intervals_of(bounds) + intervals_of(child) + std::ssize(doubts_) +
             std::ssize(differ_once_);
    if (!bounds.mixed.empty() || !child.mixed.empty()) fold_mixed(is_and, child, &bounds);
    join(bounds.all, child.all, &scratch_);
    bounds.all.swap(scratch_);
    join(bounds.any, child.any, &scratch_);
    bounds.any.swap(scratch_);
    if (!child.doubt.empty()) {
      unite(doubts_, child.doubt, &scratch_);
      doubts_.swap(scratch_);
    }
    subtract(child.any, child.all, &differ_);
    if (differ_.empty()) continue;
    intersect(differ_once_, differ_, &differ_twice_);
    unite(doubts_, differ_twice_, &scratch_);
    doubts_.swap(scratch_);
    if (i + 1 == step.children.size()) break;
    unite(differ_once_, differ_, &scratch_);
    differ_once_.swap(scratch_);
  }
  bounds.doubt.clear();
  if (doubts_.empty()) return;
  subtract(bounds.any, bounds.all, &differ_);
  intersect(differ_, doubts_, &bounds.doubt);
}

// Intervals that are mixed in one operand stay mixed if the other operand decides nothing: in an &,
// if all its queries see the keys; in an |, if none does. Requires: `bounds` is not joined with the
// child yet.
void Evaluator::fold_mixed(bool is_and, const Bounds& child, Bounds* bounds) {
  const auto keep = [&](const IntervalSet& mixed, const Bounds& other, IntervalSet* out) {
    if (is_and) {
      intersect(mixed, other.all, out);
    } else {
      subtract(mixed, other.any, out);
    }
  };
  keep(bounds->mixed, child, &scratch_);
  keep(child.mixed, *bounds, &more_mixed_);
  if (!scratch_.empty() && !more_mixed_.empty()) {
    // Mixed intervals of the two operands must not touch, so each interval loses its last key.
    for (IntervalSet* set : {&scratch_, &more_mixed_}) {
      for (Interval& keys : *set) --keys.end;
      std::erase_if(*set, [](const Interval& keys) { return keys.empty(); });
    }
  }
  unite(scratch_, more_mixed_, &bounds->mixed);
}

void visible_row(Evaluator* evaluator, std::int64_t head, std::int64_t q, std::int64_t k_begin,
                 std::int64_t count, std::uint8_t* out) {
  std::memset(out, 0, static_cast<std::size_t>(count));
  for (const Interval& keys : evaluator->row(head, q, {k_begin, k_begin + count})) {
    std::memset(out + (keys.begin - k_begin), 1, static_cast<std::size_t>(keys.size()));
  }
}

}  // namespace annulus::pattern
