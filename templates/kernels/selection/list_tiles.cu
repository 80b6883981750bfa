// Lists the tiles that an attention kernel visits for the chosen blocks: the tiles of the base
// pattern's list that hold a chosen block. It is launched twice. The first launch counts the tiles
// of each row. Then order_rows computes the place of each row, and the second launch writes the
// tiles. One warp takes one tile row, and each lane one of 32 entries at a time. A granule is the
// piece of a tile that one mask bit stands for (docs/attention.md).
//
//   list_tiles<<<(ceil(row tiles / kSelectionWarps), H, B), kSelectionThreads>>>(ListTilesParams)

#include "params/selection_params.h"
#include "tile/bits.cuh"

namespace annulus::kernels {

// The blocks that one tile touches, [first_row, last_row] x [first_column, last_column].
struct TouchedBlocks {
  int first_row, last_row, first_column, last_column;
};

__device__ __forceinline__ TouchedBlocks touched_by(const ListTilesParams& params, int row_tile,
                                                    int column_tile) {
  const int row = row_tile * params.tile_rows;
  const int column = column_tile * params.tile_columns;
  const int row_end = row + params.tile_rows < params.seq_q ? row + params.tile_rows : params.seq_q;
  const int column_end =
      column + params.tile_columns < params.seq_k ? column + params.tile_columns : params.seq_k;
  return {row / params.block_rows, (row_end - 1) / params.block_rows, column / params.block_columns,
          (column_end - 1) / params.block_columns};
}

// Writes one bit for each granule of the tile. Granules beyond the last block row or column get the
// bit of the last one; they are rows and keys that do not exist.
__device__ __forceinline__ void write_mask(const ListTilesParams& params, const unsigned* chosen,
                                           const TouchedBlocks& blocks, int row_tile,
                                           int column_tile, unsigned* words) {
  const int rows = params.tile_rows >> params.granule_row_shift;
  const int columns = params.tile_columns >> params.granule_column_shift;
  unsigned word = 0;
  int bit = 0;
  for (int r = 0; r < rows; ++r) {
    const int row =
        (row_tile * params.tile_rows + (r << params.granule_row_shift)) / params.block_rows;
    const unsigned* line =
        chosen +
        static_cast<long long>(row < blocks.last_row ? row : blocks.last_row) * params.words;
    for (int c = 0; c < columns; ++c) {
      const int column = (column_tile * params.tile_columns + (c << params.granule_column_shift)) /
                         params.block_columns;
      const int existing = column < blocks.last_column ? column : blocks.last_column;
      word |= static_cast<unsigned>(tile::has_bit(line, existing)) << (bit & 31);
      if ((++bit & 31) == 0 || bit == rows * columns) {
        words[(bit - 1) >> 5] = word;
        word = 0;
      }
    }
  }
}

__global__ void __launch_bounds__(kSelectionThreads)
    list_tiles(const __grid_constant__ ListTilesParams params) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int row_tile = static_cast<int>(blockIdx.x * kSelectionWarps + threadIdx.x / 32);
  const TileListParams& base = params.base;
  if (row_tile >= base.row_tiles) return;
  const int head = static_cast<int>(blockIdx.y);
  const long long list = static_cast<long long>(blockIdx.z) * params.heads + head;
  const unsigned* chosen = params.chosen + list * params.rows * params.words;
  // One row of head_list serves all batches, and base has no tile masks: validate() in
  // src/selection/choose.cc throws for patterns whose batches differ and for patterns with
  // blocks().
  const long long base_list = base.head_list ? base.head_list[head] : 0;
  const long long* begin = base.row_begin + base_list * (base.row_tiles + 1) + row_tile;
  const unsigned* entries = base.tiles + begin[0];
  const int length = static_cast<int>(begin[1] - begin[0]);
  const bool fill = params.row_begin != nullptr;  // the second launch
  long long place = fill ? params.row_begin[list * (base.row_tiles + 1) + row_tile] : 0;
  int count = 0;
  for (int first = 0; first < length; first += 32) {
    const bool exists = first + lane < length;
    const unsigned entry = exists ? entries[first + lane] : 0;
    const int column_tile = static_cast<int>(entry >> 1);
    const TouchedBlocks blocks = touched_by(params, row_tile, column_tile);
    bool any = false;
    bool all = true;
    if (exists) {
      for (int row = blocks.first_row; row <= blocks.last_row; ++row) {
        const unsigned* line = chosen + static_cast<long long>(row) * params.words;
        for (int column = blocks.first_column; column <= blocks.last_column; ++column) {
          const bool bit = tile::has_bit(line, column);
          any |= bit;
          all &= bit;
        }
      }
    }
    // Lanes that keep their entry write it after the entries of lower lanes, so columns stay
    // ascending. A partial tile of the base list stays partial. A full tile becomes partial if not
    // all of its blocks were chosen.
    const unsigned kept = __ballot_sync(0xffffffffu, any);
    if (fill && any) {
      const long long at = place + __popc(kept & ((1u << lane) - 1));
      params.tiles[at] = entry | (all ? 0u : 1u);
      if (params.tile_masks != nullptr) {
        // Every entry has words of its own. Their index fits 32 bits, because make_selection_plan
        // (src/selection/selection_plan.cc) throws for lists with more than 2^31 words.
        const long long words = at * params.words_of_tile;
        params.tile_masks[at] = all ? -1 : static_cast<int>(words);
        if (!all) {
          write_mask(params, chosen, blocks, row_tile, column_tile, params.mask_words + words);
        }
      }
    }
    count += __popc(kept);
    place += __popc(kept);
  }
  if (!fill && lane == 0) params.counts[list * base.row_tiles + row_tile] = count;
}

}  // namespace annulus::kernels
