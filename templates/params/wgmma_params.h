#ifndef ANNULUS_PARAMS_WGMMA_PARAMS_H_
#define ANNULUS_PARAMS_WGMMA_PARAMS_H_

// The second and third argument of kernels that copy with tensor maps: the maps, and the order of
// the works. Shared with the host, like attention_params.h.

namespace annulus::kernels {

// The result of cuTensorMapEncodeTiled: opaque, 128 bytes.
struct alignas(64) TensorMap {
  unsigned long long opaque[16];
};

// Four dimensions each: {Dqk or Dv, rows, heads, B}, boxes of 64 columns (128 bytes, with the
// 128-byte swizzle) by 64 rows of Q and O, and by a tile's rows of K and V, or by half of these
// rows if each CTA of a cluster copies half.
struct TensorMaps {
  TensorMap q, k, v, o;
};

// The order of works. Heads are taken in sets whose K and V fit the L2 cache together; within a set
// the longest rows of all its heads come first (find_work in kernels/wgmma/work.cuh). A work is one
// or more tile rows of a group of heads, computed by one CTA or by all CTAs of a cluster.
struct WorkParams {
  // With Shape::kDrawsWork: the next work to be drawn. Before the launch it is the number of
  // clusters, because the first work of each cluster is not drawn.
  unsigned* next;
  // With Shape::kDrawsWork: [count], the index of the work for each drawn number; null: it is the
  // number itself.
  const int* order;
  int count;        // row groups x head groups x B
  int groups;       // head groups of all batches
  int set;          // groups in a set
  int head_groups;  // groups of a batch
  int group_heads;  // heads of a group
  int row_groups;   // row groups of a head
  int group_rows;   // tile rows of a work, one for each CTA; 1 if its CTAs have heads of their own
};

}  // namespace annulus::kernels

#endif  // ANNULUS_PARAMS_WGMMA_PARAMS_H_
