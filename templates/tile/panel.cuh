#ifndef ANNULUS_TILE_PANEL_CUH_
#define ANNULUS_TILE_PANEL_CUH_

// Tiles in the layout of wgmma and tensor maps: panels of kPitch bytes of columns, one after
// another, each of kRows rows. Within eight rows the 16-byte chunks of a row are exchanged by bits
// of the row: the eight chunks of a row of 128 bytes by row % 8 (the 128-byte swizzle), the four of
// a row of 64 bytes by row / 2 % 4 (the 64-byte swizzle). Panels start at multiples of eight rows.

#include "ptx/wgmma.cuh"
#include "tile/element.cuh"

namespace annulus::tile {

enum : int {
  kPanelPitch = 128,
  kGroupRows = 8,  // rows within which chunks are exchanged
};

template <int kRows, int kColumns, int kBytesOfElement = kElementBytes, int kPitch = kPanelPitch>
struct Panels {
  static_assert(kPitch == 128 || kPitch == 64, "swizzles of 128 and of 64 bytes");
  static_assert(kRows % kGroupRows == 0, "panels start at multiples of eight rows");
  enum : int {
    kPanelColumns = kPitch / kBytesOfElement,
    kCount = (kColumns + kPanelColumns - 1) / kPanelColumns,
    kPanelBytes = kRows * kPitch,
    kBytes = kCount * kPanelBytes,
    kRowBytes = kPitch,
    kChunks = kPitch / 16,           // chunks of a row
    kRowsOfExchange = 128 / kPitch,  // neighbouring rows with the same exchange of chunks
    kStepsOfPanel = kPitch / 32,     // steps of columns() in a panel
    kGroupBytes = kGroupRows * kPitch,
    kSwizzle = kPitch == 128 ? ptx::kSwizzle128 : ptx::kSwizzle64,
  };

  // Descriptors of a part of the tile as an operand of step `step` of a product. columns(): 32
  // bytes of columns from byte 32 * step on, of all rows, for products whose K runs along the
  // columns. rows(): 16 rows from row 16 * step on, of all columns, for products whose K runs along
  // the rows. `tile` is descriptor_address() of the tile, so a step is one addition to the lower
  // word.
  static __device__ __forceinline__ unsigned long long columns(unsigned tile, int step) {
    return ptx::matrix_descriptor<kSwizzle>(
        tile + (static_cast<unsigned>(step / kStepsOfPanel * kPanelBytes +
                                      step % kStepsOfPanel * 32) >>
                4),
        16, kGroupBytes);
  }
  static __device__ __forceinline__ unsigned long long rows(unsigned tile, int step) {
    return ptx::matrix_descriptor<kSwizzle>(tile + (static_cast<unsigned>(step * 16 * kPitch) >> 4),
                                            kPanelBytes, kGroupBytes);
  }
  // Bytes from the start of the tile to chunk `chunk` (16 bytes) of a row.
  static __device__ __forceinline__ unsigned chunk(unsigned row, unsigned chunk) {
    return chunk / kChunks * kPanelBytes + row * kPitch +
           ((chunk % kChunks ^ row / kRowsOfExchange % kChunks) << 4);
  }
};

// The layout in which V is copied. With 16-bit elements it is an operand without a change, with K
// along its rows. Its columns fill whole panels, so panels are narrower if the head dim is not a
// multiple of 64 columns. No library that has been run on hardware uses a part of a panel there
// (attention/kernels/wgmma/config.h has the same rule on the host).
template <int kRows, int kColumns, int kBytesOfElement = kElementBytes>
struct ValuePanels : Panels<kRows, kColumns, kBytesOfElement,
                            kBytesOfElement == 2 && kColumns % 64 != 0 ? 64 : kPanelPitch> {};

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_PANEL_CUH_
