#ifndef ANNULUS_TILE_PANEL_CUH_
#define ANNULUS_TILE_PANEL_CUH_

// Tiles of 16-bit elements as wgmma and the tensor maps want them: panels of 64 columns, one after
// another, each of kRows rows of 128 bytes whose eight 16-byte chunks are exchanged by row % 8 (the
// 128-byte swizzle). Panels start at multiples of 1024 bytes.

#include "ptx/wgmma.cuh"
#include "tile/element.cuh"

namespace annulus::tile {

enum : int {
  kPanelColumns = 64,
  kPanelPitch = kPanelColumns * kElementBytes,
  kGroupRows = 8,  // rows whose chunks are exchanged together
};

template <int kRows, int kColumns>
struct Panels {
  static_assert(kRows % kGroupRows == 0, "panels start at multiples of 1024 bytes");
  enum : int {
    kCount = (kColumns + kPanelColumns - 1) / kPanelColumns,
    kPanelBytes = kRows * kPanelPitch,
    kBytes = kCount * kPanelBytes,
  };

  // The tile as an operand: the 16 columns from 16 `step` on of all rows, as those of the product's
  // K, or 16 rows of all columns. `tile` is descriptor_address() of it: what differs between steps
  // is one addition to the lower word.
  static __device__ __forceinline__ unsigned long long columns(unsigned tile, int step) {
    return ptx::matrix_descriptor(
        tile + (static_cast<unsigned>(step / 4 * kPanelBytes + step % 4 * 32) >> 4), 16,
        kGroupRows * kPanelPitch);
  }
  static __device__ __forceinline__ unsigned long long rows(unsigned tile, int step) {
    return ptx::matrix_descriptor(tile + (static_cast<unsigned>(step * 16 * kPanelPitch) >> 4),
                                  kPanelBytes, kGroupRows * kPanelPitch);
  }
  // Chunk `chunk` (8 columns) of a row.
  static __device__ __forceinline__ unsigned chunk(unsigned row, unsigned chunk) {
    return chunk / 8 * kPanelBytes + row * kPanelPitch + ((chunk % 8 ^ row % 8) << 4);
  }
};

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_PANEL_CUH_
