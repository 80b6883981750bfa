#include "pattern/evaluate.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/fail.h"

namespace annulus::pattern {
namespace {

constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kHigh = std::numeric_limits<std::int64_t>::max();

// Listed positions within the universe.
void append_listed(const std::vector<std::int64_t>& list, Interval universe, IntervalSet* out) {
  for (auto at = std::lower_bound(list.begin(), list.end(), universe.begin);
       at != list.end() && *at < universe.end; ++at) {
    append(out, {*at, *at + 1});
  }
}

// The keys that one row of blocks keeps.
void append_kept(std::span<const std::int32_t> kept, const BlockLayout& layout, Interval universe,
                 IntervalSet* out) {
  const Interval inside = intersection(universe, {0, layout.seq_k});
  if (inside.empty()) return;
  const std::int64_t width = layout.block_columns;
  for (auto at = std::lower_bound(kept.begin(), kept.end(), inside.begin / width);
       at != kept.end() && *at * width < inside.end; ++at) {
    append(out, intersection({*at * width, (*at + 1) * width}, inside));
  }
}

enum class Wanted { kAny, kAll };

// The keys that any or all of the queries see through an explicit layout.
void blocks_keys(const BlockLayout& layout, std::int64_t head, Interval queries, Interval universe,
                 Wanted wanted, IntervalSet* out) {
  const std::int64_t origin = layout.seq_k - layout.seq_q;  // position of the layout's first row
  const Interval rows = {queries.begin - origin, queries.end - origin};
  const Interval inside = intersection(rows, {0, layout.seq_q});
  if (inside.empty() || (wanted == Wanted::kAll && inside != rows)) return;
  const std::int64_t first = inside.begin / layout.block_rows;
  const std::int64_t last = (inside.end - 1) / layout.block_rows;
  const std::int64_t own_head = layout_head(layout, head);
  append_kept(layout.row(own_head, first), layout, universe, out);
  IntervalSet next, joined;
  for (std::int64_t row = first + 1; row <= last; ++row) {
    next.clear();
    append_kept(layout.row(own_head, row), layout, universe, &next);
    if (wanted == Wanted::kAny) {
      unite(*out, next, &joined);
    } else {
      intersect(*out, next, &joined);
    }
    std::swap(*out, joined);
  }
}

// The keys of the universe that any or all of the queries see through one leaf; exact.
void leaf_keys(const Node& leaf, std::int64_t head, Interval queries, Interval universe,
               Wanted wanted, IntervalSet* out) {
  out->clear();
  const bool any = wanted == Wanted::kAny;
  const std::int64_t first = queries.begin;
  const std::int64_t last = queries.end - 1;
  const auto add = [&](std::int64_t begin, std::int64_t end) {
    append(out, intersection({begin, end}, universe));
  };
  switch (leaf.kind) {
    case Kind::kDense:
      return add(kLow, kHigh);
    case Kind::kCausal:
      return add(kLow, (any ? last : first) + 1);
    case Kind::kWindow:
      // Windows of neighbouring queries overlap or touch, so their union has no hole.
      return add(leaf.first == -1 ? kLow : (any ? first : last) - leaf.first,
                 leaf.second == -1 ? kHigh : (any ? last : first) + leaf.second + 1);
    case Kind::kSink:
      return add(kLow, leaf.first);
    case Kind::kGlobalFirst:
      return add(kLow, (any ? first : last) < leaf.first ? kHigh : leaf.first);
    case Kind::kGlobalListed: {
      const auto [begin, end] =
          std::pair(std::lower_bound(leaf.list.begin(), leaf.list.end(), first),
                    std::upper_bound(leaf.list.begin(), leaf.list.end(), last));
      const std::int64_t listed = end - begin;
      if (any ? listed > 0 : listed == queries.size()) return add(kLow, kHigh);
      return append_listed(leaf.list, universe, out);
    }
    case Kind::kDocuments: {
      // The documents between the first and the last query's own each hold a query: no hole.
      const Interval low = document_of(leaf.list, first);
      const Interval high = document_of(leaf.list, last);
      if (any || low == high) add(low.begin, high.end);
      return;
    }
    case Kind::kBlocks:
      return blocks_keys(*leaf.layout, head, queries, universe, wanted, out);
    case Kind::kNot:
    case Kind::kAnd:
    case Kind::kOr:
      break;
  }
  base::fail(ErrorCode::kInternal, "a pattern leaf of kind {}", static_cast<int>(leaf.kind));
}

}  // namespace

Evaluator::Evaluator(Pattern pattern) : pattern_(std::move(pattern)) { add(pattern_.node()); }

std::size_t Evaluator::add(const Node& node) {
  std::vector<std::size_t> children;
  for (const NodePointer& child : node.children) children.push_back(add(*child));
  steps_.push_back({.node = &node, .children = std::move(children), .bounds = {}, .row = {}});
  return steps_.size() - 1;
}

const IntervalSet& Evaluator::row(std::int64_t head, std::int64_t q, Interval universe) {
  check_head(pattern_.node(), head);
  for (Step& step : steps_) {
    const Kind kind = step.node->kind;
    if (kind == Kind::kNot) {
      complement(steps_[step.children[0]].row, universe, &step.row);
    } else if (kind == Kind::kAnd || kind == Kind::kOr) {
      step.row = steps_[step.children[0]].row;
      for (std::size_t i = 1; i < step.children.size(); ++i) {
        (kind == Kind::kAnd ? intersect : unite)(step.row, steps_[step.children[i]].row, &scratch_);
        std::swap(step.row, scratch_);
      }
    } else {
      leaf_keys(*step.node, head, {q, q + 1}, universe, Wanted::kAny, &step.row);
    }
  }
  return steps_.back().row;
}

const Bounds& Evaluator::range(std::int64_t head, Interval queries, Interval universe) {
  check_head(pattern_.node(), head);
  for (Step& step : steps_) {
    Bounds& bounds = step.bounds;
    switch (step.node->kind) {
      case Kind::kNot: {
        const Bounds& child = steps_[step.children[0]].bounds;
        complement(child.any, universe, &bounds.all);
        complement(child.all, universe, &bounds.any);
        bounds.doubt = child.doubt;
        break;
      }
      case Kind::kAnd:
      case Kind::kOr:
        fold(&step);
        break;
      default:
        leaf_keys(*step.node, head, queries, universe, Wanted::kAll, &bounds.all);
        leaf_keys(*step.node, head, queries, universe, Wanted::kAny, &bounds.any);
    }
  }
  return steps_.back().bounds;
}

// & and |. A key is mixed in an operand that some but not all queries see it through. A key that is
// mixed in one operand at most, and there without doubt, comes out exact: the other operands then
// either decide it or leave it to the mixed one.
void Evaluator::fold(Step* step) {
  const auto join = step->node->kind == Kind::kAnd ? intersect : unite;
  Bounds& bounds = step->bounds;
  const Bounds& front = steps_[step->children[0]].bounds;
  bounds.all = front.all;
  bounds.any = front.any;
  doubts_ = front.doubt;
  subtract(front.any, front.all, &mixed_once_);
  for (std::size_t i = 1; i < step->children.size(); ++i) {
    const Bounds& child = steps_[step->children[i]].bounds;
    join(bounds.all, child.all, &scratch_);
    std::swap(bounds.all, scratch_);
    join(bounds.any, child.any, &scratch_);
    std::swap(bounds.any, scratch_);
    if (!child.doubt.empty()) {
      unite(doubts_, child.doubt, &scratch_);
      std::swap(doubts_, scratch_);
    }
    subtract(child.any, child.all, &mixed_);
    if (mixed_.empty()) continue;
    intersect(mixed_once_, mixed_, &mixed_twice_);
    unite(doubts_, mixed_twice_, &scratch_);
    std::swap(doubts_, scratch_);
    unite(mixed_once_, mixed_, &scratch_);
    std::swap(mixed_once_, scratch_);
  }
  subtract(bounds.any, bounds.all, &mixed_);
  intersect(mixed_, doubts_, &bounds.doubt);
}

Interval document_of(const std::vector<std::int64_t>& starts, std::int64_t q) {
  const auto next = std::upper_bound(starts.begin(), starts.end(), q);
  return {next == starts.begin() ? kLow : *(next - 1), next == starts.end() ? kHigh : *next};
}

void visible_row(Evaluator* evaluator, std::int64_t head, std::int64_t q, std::int64_t k_begin,
                 std::int64_t count, std::uint8_t* out) {
  std::memset(out, 0, static_cast<std::size_t>(count));
  for (const Interval& keys : evaluator->row(head, q, {k_begin, k_begin + count})) {
    std::memset(out + (keys.begin - k_begin), 1, static_cast<std::size_t>(keys.size()));
  }
}

}  // namespace annulus::pattern
