#ifndef ANNULUS_TILE_PANEL_CUH_
#define ANNULUS_TILE_PANEL_CUH_

// Tiles as wgmma and tensor maps take them: panels of kPitch bytes of columns, one after another,
// each of kRows rows. Within eight rows the 16-byte chunks of a row are exchanged by bits of the
// row: the eight chunks of a row of 128 bytes by row % 8 (the 128-byte swizzle), the four of a row
// of 64 bytes by row / 2 % 4 (the 64-byte swizzle). Panels start at multiples of eight rows.

#include "ptx/wgmma.cuh"
#include "tile/element.cuh"

namespace annulus::tile {

enum : int {
  kPanelPitch = 128,
  kGroupRows = 8,  // rows whose chunks are exchanged together
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
    kChunks = kPitch / 16,           // of a row
    kRowsOfExchange = 128 / kPitch,  // neighbouring rows whose chunks are exchanged alike
    kStepsOfPanel = kPitch / 32,     // of columns()
    kGroupBytes = kGroupRows * kPitch,
    kSwizzle = kPitch == 128 ? ptx::kSwizzle128 : ptx::kSwizzle64,
  };

  // Descriptors of a part of the tile as an operand of step `step` of a product. columns(): 32
  // bytes of columns from byte 32 * step on, of all rows, where the product's K runs along the
  // columns. rows(): 16 rows from row 16 * step on, of all columns, where K runs along the rows.
  // `tile` is descriptor_address() of the tile, so that steps differ by one addition to the lower
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

// V as it is copied. Of 16-bit elements it is an operand as it lies, with K along its rows, and its
// columns are those of whole panels, so that panels are narrower where 64 columns do not divide the
// head dim. No library that has been run on silicon uses a part of a panel there
// (attention/kernels/wgmma/config.h has the same rule on the host).
template <int kRows, int kColumns, int kBytesOfElement = kElementBytes>
struct ValuePanels : Panels<kRows, kColumns, kBytesOfElement,
                            kBytesOfElement == 2 && kColumns % 64 != 0 ? 64 : kPanelPitch> {};

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_PANEL_CUH_
