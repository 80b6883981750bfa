#include "autotune/parts.h"

#include <algorithm>
#include <set>

#include "attention/run/branched_forward.h"
#include "attention/tiles/tile_counts.h"
#include "attention/tiles/tile_list.h"
#include "base/math.h"
#include "pattern/batches.h"
#include "pattern/classify.h"

namespace annulus::autotune {
namespace {

constexpr std::int64_t kKeyBlock = 128;
constexpr std::int64_t kMaxHeads = 8;
constexpr std::int64_t kStrips = 4;
// The least number of key blocks of a strip, so that the copies of a kernel with several stages
// overlap.
constexpr std::int64_t kLeastBlocks = 4;

double pairs_of(const Problem& problem) {
  std::int64_t tiles = 0;
  for (const Problem& branch : attention::branch_problems(problem)) {
    tiles += attention::count_tiles(branch, kKeyBlock, kKeyBlock).tiles();
  }
  return static_cast<double>(tiles) * kKeyBlock * kKeyBlock;
}

// The problem with fewer heads and batches. If heads see different keys, all of them are kept. If
// batches do, one batch of each kind is kept.
Problem with_few_heads(const Problem& problem, std::int64_t max_kv_heads, std::int64_t max_batch,
                       int packed_heads) {
  Problem part = problem;
  part.batch =
      std::min(problem.batch, std::max(max_batch, problem.pattern.distinct_batches(problem.batch)));
  if (problem.pattern.distinct_heads(problem.heads) > 1) return part;
  const std::int64_t group = problem.heads / problem.kv_heads;
  part.kv_heads = std::min(problem.kv_heads, max_kv_heads);
  const std::int64_t few = std::max(kMaxHeads / part.kv_heads, std::int64_t{1});
  keep_heads(&part, part.kv_heads * std::min(group, base::round_up(few, packed_heads)));
  return part;
}

// Rows [first, first + rows) of the problem with at most max_keys keys. The last of these keys is
// the last key that a row of head 0 sees in any batch.
Problem strip(const Problem& problem, std::int64_t first, std::int64_t rows,
              std::int64_t max_keys) {
  Problem part = problem;
  part.seq_q = rows;
  part.q0 = problem.q_position() + first;
  part.k0 = problem.k_position();
  std::int64_t end = 0;
  for (const Pattern& seen : pattern::batch_patterns(part.pattern, part.batch).patterns) {
    pattern::Classifier classifier(seen, attention::placement_of(part), rows, kKeyBlock);
    for (const pattern::BlockRun& run : classifier.row(0, 0)) {
      end = std::max(end, run.end * kKeyBlock);
    }
  }
  end = std::clamp(end, std::min(kKeyBlock, problem.seq_k), problem.seq_k);
  const std::int64_t begin = std::max<std::int64_t>(0, base::round_up(end - max_keys, kKeyBlock));
  part.k0 = problem.k_position() + begin;
  part.seq_k = end - begin;
  return part;
}

}  // namespace

void keep_heads(Score* score, std::int64_t heads) {
  const auto cut = [&](auto* of_heads) {
    of_heads->resize(std::min(of_heads->size(), static_cast<std::size_t>(heads)));
  };
  cut(&score->alibi);
  cut(&score->bias);
  cut(&score->sink_logit);
}

void keep_heads(Problem* problem, std::int64_t heads) {
  problem->heads = heads;
  keep_heads(&problem->score, heads);
}

std::vector<Problem> choose_parts(const Problem& problem, double max_pairs, int packed_heads) {
  Problem whole = problem;
  whole.want_lse = !problem.carry_out;
  // Positions that are not set are derived from the lengths, which change in a part.
  whole.q0 = problem.q_position();
  whole.k0 = problem.k_position();
  whole.total_k = problem.context().seq_k;
  for (const std::int64_t few : {2, 1}) {
    const Problem part = with_few_heads(whole, few, few, packed_heads);
    if (pairs_of(part) <= max_pairs) return {part};
  }
  const Problem one = with_few_heads(whole, 1, 1, packed_heads);
  Problem thin = one;
  if (problem.pattern.distinct_heads(problem.heads) == 1) {
    keep_heads(&thin, std::min<std::int64_t>(thin.heads, packed_heads));
  }
  const std::int64_t rows = std::min(kPartRows, thin.seq_q);
  const std::int64_t places = base::ceil_div(thin.seq_q, kPartRows);
  std::set<std::int64_t> firsts;
  for (std::int64_t i = 0; i < kStrips; ++i) {
    firsts.insert(i * (places - 1) / (kStrips - 1) * kPartRows);
  }
  const double share = max_pairs / static_cast<double>(firsts.size());
  const auto keys = static_cast<std::int64_t>(
      share / static_cast<double>(std::max(rows, kKeyBlock) * thin.heads));
  std::vector<Problem> parts;
  for (const std::int64_t first : firsts) {
    parts.push_back(strip(thin, first, std::min(rows, thin.seq_q - first),
                          std::max(keys / kKeyBlock, kLeastBlocks) * kKeyBlock));
  }
  return parts;
}

}  // namespace annulus::autotune
