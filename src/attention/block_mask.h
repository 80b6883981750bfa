#ifndef ANNULUS_ATTENTION_BLOCK_MASK_H_
#define ANNULUS_ATTENTION_BLOCK_MASK_H_

// What a blocks() leaf says about a tile, as the bits a kernel reads (templates/tile/mask.cuh).
// Block edges need not fall on tile edges: a bit stands for a granule, a piece of rows x columns
// that no block edge cuts.

#include <cstdint>
#include <vector>

#include "annulus/attention.h"

namespace annulus::attention {

// A tile's state in place of the index of its first word, as in templates/tile/mask.cuh.
constexpr std::int32_t kTileAllVisible = -1;
constexpr std::int32_t kTileNoneVisible = -2;

class BlockMask {
 public:
  BlockMask() = default;  // of no layout
  // Both references must stay. Requires: both sizes of a tile are multiples of 16 or powers of two.
  BlockMask(const BlockLayout& layout, const Problem& problem, std::int64_t tile_rows,
            std::int64_t tile_columns);

  // log2 of a granule's rows and columns.
  int row_shift() const { return row_shift_; }
  int column_shift() const { return column_shift_; }

  // Appends the tile's words and returns the index of the first one, or one of the states above;
  // then nothing is appended.
  std::int32_t append(std::int64_t head, std::int64_t row_tile, std::int64_t column_tile,
                      std::vector<std::uint32_t>* words) const;

 private:
  bool kept(std::int64_t head, std::int64_t layout_row, std::int64_t layout_column) const;

  const BlockLayout* layout_ = nullptr;
  std::int64_t tile_rows_ = 0;
  std::int64_t tile_columns_ = 0;
  std::int64_t row_offset_ = 0;     // layout row of the problem's row 0
  std::int64_t column_offset_ = 0;  // layout column of the problem's key 0
  int row_shift_ = 0;
  int column_shift_ = 0;
};

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_BLOCK_MASK_H_
