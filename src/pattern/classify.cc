#include "pattern/classify.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"

namespace annulus::pattern {
namespace {

constexpr std::int64_t kMostLength = std::int64_t{1} << 48;
constexpr std::int64_t kMostBlock = std::int64_t{1} << 30;

void check_block(const char* name, std::int64_t value) {
  if (value < 1 || value > kMostBlock) {
    base::fail(ErrorCode::kInvalidArgument, "blocks of {} {}; it must be in [1, 2^30]", value,
               name);
  }
}

}  // namespace

void check_extent(const Extent& extent) {
  const auto length = [](std::int64_t value) { return value >= 0 && value <= kMostLength; };
  const auto position = [](std::int64_t value) {
    return value >= -kMostLength && value <= kMostLength;
  };
  if (!length(extent.seq_q) || !length(extent.seq_k) || !position(extent.q_position) ||
      !position(extent.k_position)) {
    base::fail(ErrorCode::kInvalidArgument,
               "Sq {}, Sk {} at positions {} and {}: lengths are in [0, 2^48], positions in +-2^48",
               extent.seq_q, extent.seq_k, extent.q_position, extent.k_position);
  }
}

Classifier::Classifier(Pattern pattern, const Extent& extent, std::int64_t block_rows,
                       std::int64_t block_columns)
    : extent_(extent),
      block_rows_(block_rows),
      block_columns_(block_columns),
      evaluator_(std::move(pattern)) {
  check_extent(extent);
  check_block("rows", block_rows);
  check_block("columns", block_columns);
  rows_ = extent.seq_q / block_rows + (extent.seq_q % block_rows != 0);
  columns_ = extent.seq_k / block_columns + (extent.seq_k % block_columns != 0);
}

// The blocks that some of these keys are in.
Interval Classifier::block_columns_of(const Interval& keys) const {
  return {(keys.begin - extent_.k_position) / block_columns_,
          (keys.end - 1 - extent_.k_position) / block_columns_ + 1};
}

// The blocks whose existing keys are all in the set.
void Classifier::full_columns(const IntervalSet& keys, IntervalSet* out) const {
  out->clear();
  for (const Interval& interval : keys) {
    const std::int64_t begin = interval.begin - extent_.k_position;
    const std::int64_t end = interval.end - extent_.k_position;
    append(out, {(begin + block_columns_ - 1) / block_columns_,
                 end == extent_.seq_k ? columns_ : end / block_columns_});
  }
}

void Classifier::add(BlockRun run) {
  if (!runs_.empty() && runs_.back().end == run.begin && runs_.back().partial == run.partial) {
    runs_.back().end = run.end;
  } else {
    runs_.push_back(run);
  }
}

const std::vector<BlockRun>& Classifier::row(std::int64_t head, std::int64_t row) {
  runs_.clear();
  const Interval queries = intersection(
      {extent_.q_position + row * block_rows_, extent_.q_position + (row + 1) * block_rows_},
      extent_.queries());
  if (extent_.seq_k == 0) return runs_;
  const Bounds& bounds = evaluator_.range(head, queries, extent_.keys());
  touched_.clear();
  for (const Interval& keys : bounds.any) append(&touched_, block_columns_of(keys));
  full_columns(bounds.all, &full_);
  subtract(touched_, full_, &partial_);
  doubtful_.clear();
  for (const Interval& keys : bounds.doubt) append(&doubtful_, block_columns_of(keys));

  // Both sets ascend and are disjoint; doubtful blocks among the partial ones are looked at alone.
  auto full = full_.begin();
  auto doubtful = doubtful_.begin();
  for (const Interval& partial : partial_) {
    for (; full != full_.end() && full->begin < partial.begin; ++full) {
      add({full->begin, full->end, false});
    }
    for (std::int64_t column = partial.begin; column < partial.end;) {
      while (doubtful != doubtful_.end() && doubtful->end <= column) ++doubtful;
      const bool in_doubt = doubtful != doubtful_.end() && doubtful->begin <= column;
      if (in_doubt) {
        resolve(head, queries, bounds, column++);
        continue;
      }
      const std::int64_t end =
          doubtful == doubtful_.end() ? partial.end : std::min(partial.end, doubtful->begin);
      add({column, end, true});
      column = end;
    }
  }
  for (; full != full_.end(); ++full) add({full->begin, full->end, false});
  return runs_;
}

// True where the bounds alone prove that the block has both a visible and an invisible pair.
bool Classifier::truly_mixed(const Bounds& bounds, Interval keys) {
  if (touches(bounds.all, keys) && !covers(bounds.any, keys)) return true;
  const IntervalSet block = {keys};
  IntervalSet rest;
  subtract(block, bounds.doubt, &scratch_);  // exact keys
  intersect(scratch_, bounds.any, &rest);    // of these, seen by some query
  subtract(rest, bounds.all, &scratch_);     // and not by every one
  return !scratch_.empty();
}

// A block that the bounds leave open: first its corners, which settle nearly every block that a
// diagonal crosses, then row by row until both a visible and an invisible pair were met.
void Classifier::resolve(std::int64_t head, Interval queries, const Bounds& bounds,
                         std::int64_t column) {
  const Interval keys = intersection({extent_.k_position + column * block_columns_,
                                      extent_.k_position + (column + 1) * block_columns_},
                                     extent_.keys());
  const Node& node = evaluator_.pattern().node();
  const std::int64_t corners_q[] = {queries.begin, queries.end - 1};
  const std::int64_t corners_k[] = {keys.begin, keys.end - 1};
  bool seen = false;
  bool unseen = false;
  for (const std::int64_t q : corners_q) {
    for (const std::int64_t k : corners_k) (visible(node, head, q, k) ? seen : unseen) = true;
  }
  if ((seen && unseen) || truly_mixed(bounds, keys)) return add({column, column + 1, true});
  for (std::int64_t q = queries.begin; q < queries.end && !(seen && unseen); ++q) {
    const std::int64_t count = size(evaluator_.row(head, q, keys));
    seen = seen || count > 0;
    unseen = unseen || count < keys.size();
  }
  if (seen) add({column, column + 1, unseen});
}

}  // namespace annulus::pattern
