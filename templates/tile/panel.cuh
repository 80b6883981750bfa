#ifndef ANNULUS_TILE_PANEL_CUH_
#define ANNULUS_TILE_PANEL_CUH_

// Tiles as wgmma and tensor maps take them: panels of 128 bytes of columns (64 elements of 16
// bits, 128 of 8), one after another, each of kRows rows whose eight 16-byte chunks are exchanged
// by row % 8 (the 128-byte swizzle). Panels start at multiples of 1024 bytes.

#include "ptx/wgmma.cuh"
#include "tile/element.cuh"

namespace annulus::tile {

enum : int {
  kPanelPitch = 128,
  kGroupRows = 8,  // rows whose chunks are exchanged together
};

template <int kRows, int kColumns, int kBytesOfElement = kElementBytes>
struct Panels {
  static_assert(kRows % kGroupRows == 0, "panels start at multiples of 1024 bytes");
  enum : int {
    kPanelColumns = kPanelPitch / kBytesOfElement,
    kCount = (kColumns + kPanelColumns - 1) / kPanelColumns,
    kPanelBytes = kRows * kPanelPitch,
    kBytes = kCount * kPanelBytes,
  };

  // Descriptors of a part of the tile as an operand of step `step` of a product. columns(): 32
  // bytes of columns from byte 32 * step on, of all rows, where the product's K runs along the
  // columns. rows(): 16 rows from row 16 * step on, of all columns, where K runs along the rows.
  // `tile` is descriptor_address() of the tile, so that steps differ by one addition to the lower
  // word.
  static __device__ __forceinline__ unsigned long long columns(unsigned tile, int step) {
    return ptx::matrix_descriptor(
        tile + (static_cast<unsigned>(step / 4 * kPanelBytes + step % 4 * 32) >> 4), 16,
        kGroupRows * kPanelPitch);
  }
  static __device__ __forceinline__ unsigned long long rows(unsigned tile, int step) {
    return ptx::matrix_descriptor(tile + (static_cast<unsigned>(step * 16 * kPanelPitch) >> 4),
                                  kPanelBytes, kGroupRows * kPanelPitch);
  }
  // Bytes from the start of the tile to chunk `chunk` (16 bytes) of a row.
  static __device__ __forceinline__ unsigned chunk(unsigned row, unsigned chunk) {
    return chunk / 8 * kPanelBytes + row * kPanelPitch + ((chunk % 8 ^ row % 8) << 4);
  }
};

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_PANEL_CUH_
