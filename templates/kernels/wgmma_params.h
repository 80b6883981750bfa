#ifndef ANNULUS_KERNELS_WGMMA_PARAMS_H_
#define ANNULUS_KERNELS_WGMMA_PARAMS_H_

// The second argument of kernels that copy by tensor maps, and how their work is ordered: shared
// with the host, as attention_params.h is.

namespace annulus::kernels {

// What cuTensorMapEncodeTiled makes: opaque, 128 bytes.
struct alignas(64) TensorMap {
  unsigned long long opaque[16];
};

// Four dimensions each: {Dqk or Dv, rows, heads, B}, boxes of 64 columns (128 bytes, with the
// 128-byte swizzle) by 64 rows of Q and O, and by kListColumns rows of K and V.
struct TensorMaps {
  TensorMap q, k, v, o;
};

// Which tile row of which heads comes when. Heads are taken in sets whose K and V fit the L2 cache
// together; within a set the longest rows of all its heads come first.
struct WorkParams {
  int count;        // tile rows x head groups x B: CTA x takes work x, x + grid, ...
  int groups;       // head groups of all batches, a group being the heads of one CTA
  int set;          // groups in a set
  int head_groups;  // groups of a batch
};

}  // namespace annulus::kernels

#endif  // ANNULUS_KERNELS_WGMMA_PARAMS_H_
