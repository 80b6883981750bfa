#include "ring/needs.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/work.h"
#include "pattern/batches.h"
#include "pattern/evaluate.h"

namespace annulus::ring {
namespace {

using pattern::Interval;
using pattern::IntervalSet;

// If the answer for an interval of queries leaves keys undecided, and it has at most this number of
// queries, they are evaluated one by one.
constexpr std::int64_t kRowsAlone = 128;
// If it has more queries, this number of queries at its two ends is evaluated one by one before the
// interval is halved.
constexpr std::int64_t kRowsOfEnds = 8;

// The keys at positions [keys.begin, keys.end) are rows of the shard of `owner`, from row `row` on.
struct OwnedKeys {
  Interval keys;
  int owner = 0;
  std::int64_t row = 0;
};

std::vector<OwnedKeys> owned_keys(const Problem& problem, const ShardMap& shards) {
  std::vector<OwnedKeys> all;
  for (int owner = 0; owner < shards.ranks(); ++owner) {
    std::int64_t row = 0;
    for (const Segment& segment : shards.k[static_cast<std::size_t>(owner)]) {
      const std::int64_t first = problem.k_position() + segment.start;
      if (segment.length > 0) all.push_back({{first, first + segment.length}, owner, row});
      row += segment.length;
    }
  }
  std::sort(all.begin(), all.end(),
            [](const OwnedKeys& a, const OwnedKeys& b) { return a.keys.begin < b.keys.begin; });
  return all;
}

// The keys that some batches see through one branch of the problem's pattern.
class KeySearch {
 public:
  KeySearch(const Problem& problem, const Pattern& pattern)
      : problem_(problem),
        universe_{problem.k_position(), problem.k_position() + problem.seq_k},
        heads_(pattern.distinct_heads(problem.heads)),
        evaluator_(pattern, problem.context()) {}

  // Adds the positions of the keys that at least one of the rows sees through any head.
  void add(const Segment& rows, IntervalSet* known) {
    if (rows.length == 0) return;
    const std::int64_t first = problem_.q_position() + rows.start;
    known_ = known;
    for (std::int64_t head = 0; head < heads_; ++head) {
      if (pattern::covers(*known, universe_)) return;
      look(head, {first, first + rows.length}, universe_);
    }
  }

 private:
  void look(std::int64_t head, const Interval& queries, const Interval& universe) {
    IntervalSet doubt;
    {
      const pattern::Bounds& bounds = evaluator_.range(head, queries, universe);
      pattern::subtract(bounds.any, *known_, &fresh_);
      if (fresh_.empty()) return;
      pattern::intersect(fresh_, bounds.doubt, &doubt);
    }
    pattern::subtract(fresh_, doubt, &certain_);
    learn(certain_);
    // Queries at the ends come first: in a pattern of bands, they see the same keys as the queries
    // between them.
    const std::int64_t size = queries.size();
    const std::int64_t alone = size <= kRowsAlone ? size : std::min(size, kRowsOfEnds);
    for (std::int64_t i = 0; i < alone && !doubt.empty(); ++i) {
      const std::int64_t row = i % 2 == 0 ? queries.end - 1 - i / 2 : queries.begin + i / 2;
      const Interval hull = {doubt.front().begin, doubt.back().end};
      pattern::intersect(evaluator_.row(head, row, hull), doubt, &certain_);
      if (certain_.empty()) continue;
      learn(certain_);
      pattern::subtract(doubt, certain_, &fresh_);
      doubt.swap(fresh_);
    }
    if (doubt.empty() || alone == size) return;
    const Interval hull = {doubt.front().begin, doubt.back().end};
    const std::int64_t middle = queries.begin + size / 2;
    look(head, {queries.begin, middle}, hull);
    look(head, {middle, queries.end}, hull);
  }

  void learn(const IntervalSet& keys) {
    if (keys.empty()) return;
    pattern::unite(*known_, keys, &united_);
    known_->swap(united_);
  }

  const Problem& problem_;
  const Interval universe_;
  const std::int64_t heads_;
  pattern::Evaluator evaluator_;
  IntervalSet* known_ = nullptr;
  IntervalSet fresh_, certain_, united_;
};

// Closes the smallest gaps of a set until it has kMaxPieces intervals. Of gaps of the same size,
// the first ones are closed first. Returns the number of rows in the closed gaps.
std::int64_t close_gaps(IntervalSet* rows) {
  if (rows->size() <= kMaxPieces) return 0;
  // The gap before interval i.
  const auto gap = [&](std::size_t i) { return (*rows)[i].begin - (*rows)[i - 1].end; };
  std::vector<std::size_t> gaps(rows->size() - 1);
  for (std::size_t i = 0; i < gaps.size(); ++i) gaps[i] = i + 1;
  const auto closed = gaps.begin() + static_cast<std::ptrdiff_t>(rows->size() - kMaxPieces);
  std::nth_element(gaps.begin(), closed, gaps.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(gap(a), a) < std::pair(gap(b), b);
  });
  std::sort(gaps.begin(), closed);
  std::int64_t unneeded = 0;
  IntervalSet kept;
  auto next = gaps.begin();
  for (std::size_t i = 0; i < rows->size(); ++i) {
    if (next != closed && *next == i) {
      unneeded += gap(i);
      kept.back().end = (*rows)[i].end;
      ++next;
    } else {
      kept.push_back((*rows)[i]);
    }
  }
  rows->swap(kept);
  return unneeded;
}

// Distributes positions of keys to their owners.
std::vector<Need> deal(const std::vector<OwnedKeys>& owned, const IntervalSet& positions) {
  struct Piece {
    int owner;
    Interval rows;
  };
  std::vector<Piece> pieces;
  auto at = owned.begin();
  for (const Interval& keys : positions) {
    at = std::partition_point(at, owned.end(),
                              [&](const OwnedKeys& other) { return other.keys.end <= keys.begin; });
    for (auto each = at; each != owned.end() && each->keys.begin < keys.end; ++each) {
      const Interval part = pattern::intersection(each->keys, keys);
      const std::int64_t first = each->row + part.begin - each->keys.begin;
      pieces.push_back({each->owner, {first, first + part.size()}});
    }
  }
  base::charge(16 * std::ssize(pieces));
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return std::pair(a.owner, a.rows.begin) < std::pair(b.owner, b.rows.begin);
  });
  std::vector<Need> needs;
  for (const Piece& piece : pieces) {
    if (needs.empty() || needs.back().owner != piece.owner) needs.push_back({piece.owner, {}, 0});
    pattern::append(&needs.back().rows, piece.rows);
  }
  for (Need& need : needs) {
    need.unneeded = close_gaps(&need.rows);
    need.rows.shrink_to_fit();
  }
  return needs;
}

}  // namespace

const Need* Needs::find_in(std::span<const Need> needs, int owner) {
  const auto at = std::ranges::lower_bound(needs, owner, std::less<>(), &Need::owner);
  return at == needs.end() || at->owner != owner ? nullptr : &*at;
}

Needs find_needs(const Problem& problem, const ShardMap& shards) {
  const std::vector<Pattern> branches = problem.pattern.branches();
  // Rows travel for all batches together, so a row is needed if one batch sees it.
  std::vector<std::vector<KeySearch>> searches;
  for (const Pattern& branch : branches) {
    searches.emplace_back();
    for (const Pattern& pattern : pattern::batch_patterns(branch, problem.batch).patterns) {
      searches.back().emplace_back(problem, pattern);
    }
  }
  const std::vector<OwnedKeys> owned = owned_keys(problem, shards);
  Needs needs(shards.ranks(), static_cast<int>(branches.size()));
  IntervalSet seen, all, united;
  for (int rank = 0; rank < shards.ranks(); ++rank) {
    all.clear();
    for (int branch = 0; branch < needs.branches(); ++branch) {
      seen.clear();
      for (KeySearch& search : searches[static_cast<std::size_t>(branch)]) {
        for (const Segment& rows : shards.q[static_cast<std::size_t>(rank)]) {
          search.add(rows, &seen);
        }
      }
      if (needs.branches() > 1) needs.set(rank, branch, deal(owned, seen));
      pattern::unite(all, seen, &united);
      all.swap(united);
    }
    needs.set(rank, deal(owned, all));
  }
  return needs;
}

}  // namespace annulus::ring
