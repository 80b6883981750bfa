#ifndef ANNULUS_PARAMS_BATCH_MAP_PARAMS_H_
#define ANNULUS_PARAMS_BATCH_MAP_PARAMS_H_

// The second argument of chunk_wgmma_forward: the tensor maps with which it copies. Shared with the
// host (src/batch/batch_maps.h).

#include "params/batch_params.h"
#include "params/wgmma_params.h"

namespace annulus::kernels {

enum : int { kPartRows = 16 };

// K or V: dimensions {Dqk or Dv, rows of a page, Hkv, pages}. Without pages {Dqk or Dv, rows, Hkv,
// requests}, and the number of rows is not bounded. A dimension with a stride of 0, whose entries
// are all at the same place, has one entry. There are boxes of 64 columns by `kUnit` rows, by
// kPartRows rows and by one row; maps that the kernel does not use are zero.
struct KeyMaps {
  TensorMap unit, part, row;
};

// Q: dimensions {Dqk, heads of a group, Hkv, rows}, boxes of 64 columns by the heads of a tile.
struct BatchMaps {
  TensorMap q;
  KeyMaps k, v;
};

// A work. The producer of the kernel writes it to shared memory for the consumers.
struct alignas(16) ChunkWork {
  BatchRow row;
  BatchWork work;
  int column;
  int steps;
};

}  // namespace annulus::kernels

#endif  // ANNULUS_PARAMS_BATCH_MAP_PARAMS_H_
