// Chooses the blocks of a row from their scores: first the forced blocks, and then the best blocks
// until `most` blocks or the wanted share of the row's softmax mass is reached. Of equal scores,
// the lower column comes first. One warp takes one row.
//
//   select_blocks<<<(ceil(rows / kSelectionWarps), H, B), kSelectionThreads>>>(SelectParams)
//
// The best blocks are the blocks with keys above a threshold. The threshold is found bit by bit
// from the highest bit down, with one pass over the row for each bit. Counts and masses are
// integers, so sums do not depend on the order. The unit of mass is 2^-24 of the best block's mass.
// With several parts, mass is a block's mean share of the parts, in units of 2^-24.

#include "kernels/selection/candidates.cuh"
#include "params/selection_params.h"
#include "tile/bits.cuh"
#include "tile/block_score.cuh"
#include "tile/exact_math.cuh"

namespace annulus::kernels {

// One row of blocks, spread over the lanes of a warp: lane l has column 32 w + l of word w.
class ScoredRow {
 public:
  __device__ __forceinline__ ScoredRow(const SelectParams& params, int row, int lane)
      : candidates_(params.candidates, row), words_(params.candidates.words), lane_(lane) {
    const CandidateParams& of = params.candidates;
    const long long head = blockIdx.y;
    forced_ = params.forced + (head % of.visible_heads * of.rows + row) * words_;
    const long long line = (static_cast<long long>(blockIdx.z) * of.heads + head) * of.rows + row;
    scores_ = params.scores + line * params.parts * words_ * 32;
    chosen_ = params.chosen + line * words_;
    const int left = params.score_rows - row * params.parts;
    parts_ = left < params.parts ? left : params.parts;
  }

  // Prepares mass(). Several parts (rows of cells) are joined into one mass for each block, in
  // place of the first part's scores; a single part keeps its scores, and mass() takes their
  // softmax relative to the peak. Either way mass() is at most 2^24.
  __device__ __forceinline__ void prepare(bool several_parts) {
    if (several_parts) {
      join_parts();
      unit_ = __fdiv_rn(16777216.0f, static_cast<float>(parts_));
      peak_ = 0.0f;
    } else {
      unit_ = 16777216.0f;
      peak_ = peak_of(0);
    }
    several_parts_ = several_parts;
  }

  // Whether the lane's block of a word is a candidate, and whether it is forced.
  __device__ __forceinline__ bool is_visible(int word) const {
    return candidates_.has(word * 32 + lane_);
  }
  __device__ __forceinline__ bool is_forced(int word) const { return forced_[word] >> lane_ & 1u; }
  __device__ __forceinline__ int words() const { return words_; }
  // Stores the chosen blocks of a word. `bits` is the same in all lanes.
  __device__ __forceinline__ void choose(int word, unsigned bits) const {
    if (lane_ == 0) chosen_[word] = bits;
  }

  // Keys have the order of scores; blocks that are not candidates have the lowest key, forced ones
  // the highest (tile/block_score.cuh).
  __device__ __forceinline__ unsigned key(int word) const {
    if (!is_visible(word)) return tile::kInvisibleKey;
    return is_forced(word) ? tile::kForcedKey : tile::key_of(score(0, word));
  }
  // Requires: is_visible(word).
  __device__ __forceinline__ unsigned mass(int word) const {
    const float value = score(0, word);
    const float share = several_parts_ ? value : tile::exact_exp2(__fadd_rn(value, -peak_));
    return static_cast<unsigned>(__fmul_rn(share, unit_));
  }

 private:
  __device__ __forceinline__ float& score(int part, int word) const {
    return scores_[(static_cast<long long>(part) * words_ + word) * 32 + lane_];
  }
  __device__ __forceinline__ float peak_of(int part) const {
    float peak = -3.402823466e+38f;
    for (int word = 0; word < words_; ++word) {
      if (is_visible(word)) peak = fmaxf(peak, score(part, word));
    }
    return tile::warp_max(peak);
  }
  // Each part is a row of logarithms with a softmax of its own; a block's mass is the sum of its
  // shares in all parts. It replaces the first part's score, which is read before it is written.
  __device__ __forceinline__ void join_parts() {
    for (int part = 0; part < parts_; ++part) {
      const float peak = peak_of(part);
      float sum = 0.0f;
      for (int word = 0; word < words_; ++word) {
        if (is_visible(word)) {
          sum = __fadd_rn(sum, tile::exact_exp2(__fadd_rn(score(part, word), -peak)));
        }
      }
      sum = tile::warp_sum(sum);
      for (int word = 0; word < words_; ++word) {
        if (!is_visible(word)) continue;
        const float share = __fdiv_rn(tile::exact_exp2(__fadd_rn(score(part, word), -peak)), sum);
        score(0, word) = part == 0 ? share : __fadd_rn(score(0, word), share);
      }
    }
  }

  CandidateRow candidates_;
  const unsigned* forced_;
  float* scores_;
  unsigned* chosen_;
  int words_;
  int parts_;
  int lane_;
  bool several_parts_ = false;
  float peak_ = 0.0f;
  float unit_ = 0.0f;
};

// The number of blocks whose keys are at least a threshold, and their mass.
struct Amount {
  int count;
  unsigned long long mass;
};

__device__ __forceinline__ Amount amount_from(const ScoredRow& row, unsigned threshold,
                                              bool with_mass) {
  Amount amount{0, 0};
  for (int word = 0; word < row.words(); ++word) {
    if (row.key(word) < threshold) continue;
    ++amount.count;
    if (with_mass) amount.mass += row.mass(word);
  }
  amount.count = tile::warp_sum(amount.count);
  if (with_mass) amount.mass = tile::warp_sum(amount.mass);
  return amount;
}

__global__ void __launch_bounds__(kSelectionThreads)
    select_blocks(const __grid_constant__ SelectParams params) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int index = static_cast<int>(blockIdx.x * kSelectionWarps + threadIdx.x / 32);
  if (index >= params.candidates.rows) return;
  ScoredRow row(params, index, lane);
  const bool by_mass = params.mass != 0;
  row.prepare(params.parts > 1);

  // All candidates, and the forced blocks. No forced block is left out; if there are more than
  // `most`, they raise `most`.
  const Amount all = amount_from(row, 1, by_mass);
  const Amount forced = amount_from(row, tile::kForcedKey, by_mass);
  const int most = params.most > forced.count ? params.most : forced.count;
  // The wanted mass, rounded up (wanted_mass in src/selection/selection_plan.h). The product is
  // computed in two parts, because a row may have 2^30 blocks with a mass of 2^24 each. If all mass
  // is wanted, blocks without mass are taken too, and only `most` limits their number.
  const bool all_mass = params.mass >= 1u << 20;
  const unsigned long long target =
      (all.mass >> 20) * params.mass + (((all.mass & 0xfffff) * params.mass + 0xfffff) >> 20);
  const auto enough = [&](const Amount& amount) {
    return amount.count >= most || (by_mass && !all_mass && amount.mass >= target);
  };

  // The highest threshold with which there are enough blocks. If even all candidates are not
  // enough, it is 1, and every candidate is taken.
  unsigned threshold = 0;
  if (enough(all)) {
    for (int bit = 31; bit >= 0; --bit) {
      const unsigned higher = threshold | 1u << bit;
      if (enough(amount_from(row, higher, by_mass))) threshold = higher;
    }
  }
  if (threshold == 0) threshold = 1;

  // Blocks above the threshold are all taken; of the blocks at the threshold, only the number that
  // is still needed is taken, from the left. Blocks with equal keys have equal masses. At
  // kForcedKey, which is the highest key, the blocks are the forced ones, all of which are taken.
  const Amount above =
      threshold == tile::kForcedKey ? Amount{0, 0} : amount_from(row, threshold + 1, by_mass);
  int wanted = threshold == tile::kForcedKey ? forced.count : most - above.count;
  if (by_mass && !all_mass && threshold != tile::kForcedKey) {
    unsigned mass = 0;
    for (int word = 0; word < row.words(); ++word) {
      if (row.key(word) == threshold) mass = row.mass(word);
    }
    mass = __reduce_max_sync(0xffffffffu, mass);
    if (mass != 0 && target > above.mass) {
      const unsigned long long needed = (target - above.mass + mass - 1) / mass;
      if (needed < static_cast<unsigned long long>(wanted)) wanted = static_cast<int>(needed);
    }
  }
  for (int word = 0; word < row.words(); ++word) {
    const unsigned key = row.key(word);
    const unsigned better = __ballot_sync(0xffffffffu, key > threshold);
    const unsigned equal = __ballot_sync(0xffffffffu, key == threshold);
    const unsigned taken = tile::lowest_bits(equal, wanted);
    wanted -= __popc(taken);
    row.choose(word, better | taken);
  }
}

}  // namespace annulus::kernels
