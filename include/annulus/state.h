#ifndef ANNULUS_STATE_H_
#define ANNULUS_STATE_H_

// The running state of attention, so that the keys of one row may be split over several launches,
// devices or machines and joined afterwards without loss. With t = log2(e) x the final score of a
// visible (query, key) pair (all of annulus/score.h applied but the sink logits, which join where O
// is written), the state of one row is
//
//   m   = max of t                     base 2; -inf where no key was visible
//   l   = sum of 2^(t - m)             0 where no key was visible
//   acc = sum of 2^(t - m) v  [Dv]     not normalised; 0 where no key was visible
//
// and O = acc / l, LSE = ln 2 (m + log2 l). Only l decides whether a row is empty: in a state that
// comes in, m and acc of a row with l = 0 may be anything. On a device the three live in contiguous
// fp32 arrays acc[B, H, Sq, Dv], m[B, H, Sq], l[B, H, Sq]; here they are host memory.

#include <cstdint>
#include <vector>

#include "annulus/types.h"

namespace annulus::inline v0 {

// The version of the meaning above. A state carries it between processes, and states of different
// versions do not merge.
constexpr int kStateVersion = 1;

// States of `rows` rows in host memory.
struct HostState {
  int version = kStateVersion;
  std::int64_t rows = 0;
  std::int64_t dim_v = 0;
  std::vector<float> acc;  // [rows, dim_v]
  std::vector<float> m;    // [rows]
  std::vector<float> l;    // [rows]

  static ANNULUS_EXPORT HostState empty(std::int64_t rows, std::int64_t dim_v);
};

// Merges two states into that of the union of their key sets, which must be disjoint. Merging with
// an empty row returns the other row bit for bit; two empty rows give an empty row. NaN spreads
// only to its own row. Throws Error{kInvalidArgument} where rows, dim_v, array sizes or versions
// differ.
ANNULUS_EXPORT HostState merge(const HostState& a, const HostState& b);

// O and LSE of a state: an empty row gives 0 and -inf.
struct FinishedRows {
  std::vector<float> o;    // [rows, dim_v]
  std::vector<float> lse;  // [rows], in the base asked for
};
ANNULUS_EXPORT FinishedRows finish(const HostState& state, LseBase base);

}  // namespace annulus::inline v0

#endif  // ANNULUS_STATE_H_
