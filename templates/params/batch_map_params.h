#ifndef ANNULUS_PARAMS_BATCH_MAP_PARAMS_H_
#define ANNULUS_PARAMS_BATCH_MAP_PARAMS_H_

// The second argument of chunk_wgmma_forward: the tensor maps by which it copies. Shared with the
// host (src/batch/batch_maps.h).

#include "params/batch_params.h"
#include "params/wgmma_params.h"

namespace annulus::kernels {

enum : int { kPartRows = 16 };

// K or V: dimensions {Dqk or Dv, rows of a page, Hkv, pages}. Without pages {Dqk or Dv, rows, Hkv,
// requests}, and the rows have no end. A dimension of which all entries lie at one place, with a
// stride of 0, has one entry. Boxes of 64 columns by `kUnit` rows, kPartRows rows and one row;
// those that the kernel does not use are zero.
struct KeyMaps {
  TensorMap unit, part, row;
};

// Q: dimensions {Dqk, heads of a group, Hkv, rows}, boxes of 64 columns by the heads of a tile.
struct BatchMaps {
  TensorMap q;
  KeyMaps k, v;
};

// A work, as the producer of the kernel leaves it in shared memory for the consumers.
struct alignas(16) ChunkWork {
  BatchRow row;
  BatchWork work;
  int column;
  int steps;
};

}  // namespace annulus::kernels

#endif  // ANNULUS_PARAMS_BATCH_MAP_PARAMS_H_
