#ifndef ANNULUS_ATTENTION_TILES_BLOCK_MASK_H_
#define ANNULUS_ATTENTION_TILES_BLOCK_MASK_H_

// The visibility of a tile by a blocks() leaf, as the bits that a kernel reads
// (templates/tile/mask.cuh). Block edges need not coincide with tile edges: a bit stands for a
// granule, a piece of rows x columns that no block edge cuts.

#include <cstdint>
#include <vector>

#include "annulus/problem.h"
#include "pattern/classify.h"

namespace annulus::attention {

// The state of a tile, stored in place of the index of its first word, as in
// templates/tile/mask.cuh.
constexpr std::int32_t kTileAllVisible = -1;
constexpr std::int32_t kTileNoneVisible = -2;

class BlockMask {
 public:
  BlockMask() = default;  // a mask without a layout; append() must not be called
  // The layout must outlive the mask. Requires: both sizes of a tile are multiples of 16 or powers
  // of two.
  BlockMask(const BlockLayout& layout, const pattern::Placement& placement, std::int64_t tile_rows,
            std::int64_t tile_columns);

  // log2 of the rows and columns of a granule.
  int row_shift() const { return rows_.shift; }
  int column_shift() const { return columns_.shift; }

  // Appends the tile's words and returns the index of the first one. If all granules are visible,
  // or none, it appends nothing and returns the state.
  std::int32_t append(std::int64_t head, std::int64_t row_tile, std::int64_t column_tile,
                      std::vector<std::uint32_t>* words) const;

 private:
  // An axis of the tensors, and its mapping to the layout's axis.
  struct Axis {
    // Rows [begin, end) of the tensor are rows from `layout` on of the layout.
    struct Part {
      std::int64_t begin = 0;
      std::int64_t end = 0;
      std::int64_t layout = 0;
    };
    std::vector<Part> parts;
    std::int64_t layout_length = 0;
    std::int64_t block = 0;
    std::int64_t tile = 0;
    int shift = 0;  // log2 of the granule's size

    Axis() = default;
    Axis(const std::vector<Segment>& segments, std::int64_t position_of_layout,
         std::int64_t layout_length, std::int64_t block, std::int64_t tile);
    // The layout's block that holds row `index` of the tensor, or -1.
    std::int64_t block_of(std::int64_t index) const;
  };
  bool kept(std::int64_t head, std::int64_t block_row, std::int64_t block_column) const;

  const BlockLayout* layout_ = nullptr;
  Axis rows_, columns_;
};

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_TILES_BLOCK_MASK_H_
