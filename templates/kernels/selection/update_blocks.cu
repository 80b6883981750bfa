// Changes the kept blocks of a row: it adds at most A blocks (max_added) and drops at most B
// (max_dropped). While fewer than `most` are kept, the candidate with the best score is added. Then
// the best candidate outside replaces the kept block with the least measured mass, as long as the
// candidate's share of the row's softmax over block scores is larger than that block's share of the
// measured attention. Of equal scores the lower column is added, of equal masses the higher column
// is dropped. Forced blocks are never dropped, and a block that this update changed is not changed
// again. One warp takes one row. At the end the row's masses are 0, for the next measurements, and
// its bits of forced blocks are cleared: the indices that are exported from the row have none, and
// mark_blocks adds them again.
//
//   update_blocks<<<(ceil(rows / kSelectionWarps), H, B), kSelectionThreads>>>(UpdateParams)

#include "kernels/selection/candidates.cuh"
#include "params/importance_params.h"
#include "tile/bits.cuh"
#include "tile/block_score.cuh"
#include "tile/exact_math.cuh"

namespace annulus::kernels {

// The largest value of the warp's lanes, and of equal values the value of the lowest column. A
// column of -1 means that a lane has none.
struct Best {
  unsigned long long value;
  int column;
};
__device__ __forceinline__ Best warp_best(Best best) {
#pragma unroll
  for (int distance = 16; distance > 0; distance >>= 1) {
    const unsigned long long value = __shfl_xor_sync(0xffffffffu, best.value, distance);
    const int column = __shfl_xor_sync(0xffffffffu, best.column, distance);
    if (column < 0) continue;
    if (best.column < 0 || value > best.value || (value == best.value && column < best.column)) {
      best = {value, column};
    }
  }
  return best;
}

// Marks the mass of a block that this update has changed. No real mass is as large.
__device__ __forceinline__ unsigned long long changed() { return ~0ull; }

__global__ void __launch_bounds__(kSelectionThreads)
    update_blocks(const __grid_constant__ UpdateParams params) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int row = static_cast<int>(blockIdx.x * kSelectionWarps + threadIdx.x / 32);
  const CandidateParams& of = params.candidates;
  if (row >= of.rows) return;
  const CandidateRow candidates(of, row);
  const long long head = blockIdx.y;
  const long long line = (static_cast<long long>(blockIdx.z) * of.heads + head) * of.rows + row;
  const unsigned* forced = params.forced + (head % of.visible_heads * of.rows + row) * of.words;
  const float* scores = params.scores + line * of.words * 32;
  unsigned* kept = params.kept + line * of.words;
  unsigned long long* mass = params.mass + line * params.columns;

  // Facts about the whole row: the number of kept blocks without forced ones, the highest score of
  // a candidate, the total measured mass, and the total of the candidates' softmax.
  int count = 0;
  float peak = -3.402823466e+38f;
  unsigned long long measured = 0;
  for (int column = lane; column < params.columns; column += 32) {
    if (tile::has_bit(kept, column)) {
      count += !tile::has_bit(forced, column);
      measured += mass[column];
    }
    if (candidates.has(column)) peak = fmaxf(peak, scores[column]);
  }
  count = tile::warp_sum(count);
  measured = tile::warp_sum(measured);
  peak = tile::warp_max(peak);
  // A candidate's softmax weight relative to the best score, in units of 2^-24. Integers and
  // correctly rounded operations give the same result on every device.
  const auto power_of = [&](int column) {
    return static_cast<unsigned>(
        __fmul_rn(tile::exact_exp2(__fadd_rn(scores[column], -peak)), 16777216.0f));
  };
  unsigned long long powers = 0;
  for (int column = lane; column < params.columns; column += 32) {
    if (candidates.has(column)) powers += power_of(column);
  }
  powers = tile::warp_sum(powers);

  // Each turn adds one block. The loop ends early if no candidate is left, nothing may be dropped
  // any more, or the best exchange would not gain.
  int dropped = 0;
  for (int added = 0; added < params.max_added; ++added) {
    Best best{0, -1};
    for (int column = lane; column < params.columns; column += 32) {
      if (!candidates.has(column) || tile::has_bit(kept, column)) continue;
      if (mass[column] == changed()) continue;
      const unsigned key = tile::key_of(scores[column]);
      if (best.column < 0 || key > best.value) best = {key, column};
    }
    best = warp_best(best);
    if (best.column < 0) break;
    int gone = -1;
    if (count >= params.most) {
      if (dropped == params.max_dropped) break;
      // Finds the least mass with warp_best, which finds the largest value and then the lowest
      // column. So it gets complements of masses, and columns counted from the end.
      Best least{0, -1};
      const int last = params.columns - 1;
      for (int column = lane; column < params.columns; column += 32) {
        if (!tile::has_bit(kept, column) || tile::has_bit(forced, column)) continue;
        if (mass[column] == changed()) continue;
        const Best here{~mass[column], last - column};
        if (least.column < 0 || here.value > least.value ||
            (here.value == least.value && here.column < least.column)) {
          least = here;
        }
      }
      least = warp_best(least);
      if (least.column < 0) break;
      gone = last - least.column;
      // Comparing the shares by cross products of integers would exceed 64 bits. These divisions
      // are correctly rounded, so the host gets the same result.
      const float outside =
          __fdiv_rn(static_cast<float>(power_of(best.column)), __ull2float_rn(powers));
      const float inside =
          measured == 0 ? 0.0f : __fdiv_rn(__ull2float_rn(mass[gone]), __ull2float_rn(measured));
      if (!(outside > inside)) break;
      ++dropped;
    } else {
      ++count;
    }
    // All lanes have read before lane 0 writes, and they read again only after lane 0 has written.
    __syncwarp();
    if (lane == 0) {
      kept[best.column >> 5] |= 1u << (best.column & 31);
      mass[best.column] = changed();
      if (gone >= 0) {
        kept[gone >> 5] &= ~(1u << (gone & 31));
        mass[gone] = changed();
      }
    }
    __syncwarp();
  }
  __syncwarp();  // the last turn may have ended while lanes still read the masses
  for (int column = lane; column < params.columns; column += 32) mass[column] = 0;
  for (int word = lane; word < of.words; word += 32) kept[word] &= ~forced[word];
}

}  // namespace annulus::kernels
