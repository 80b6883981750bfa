#ifndef ANNULUS_PARAMS_SELECTION_PARAMS_H_
#define ANNULUS_PARAMS_SELECTION_PARAMS_H_

// The arguments of the kernels that choose blocks on the device and list them for the attention
// kernels: the contract between the host (src/selection) and the templates. Plain C++ without
// includes, as attention_params.h.
//
// Block (i, j) has rows [i R, (i + 1) R) of Q and rows [j C, (j + 1) C) of K, as far as they exist.
// A set of blocks is bits: word w of a row of blocks holds columns 32 w to 32 w + 31, lowest first;
// bits beyond the last column are 0. Strides count elements.

#include "params/attention_params.h"

namespace annulus::kernels {

enum : int {
  kSelectionThreads = 128,  // threads of a CTA of every kernel here, unless it says otherwise
  kSelectionWarps = kSelectionThreads / 32,
  kScoreTile = 64,      // rows and columns of the scores that one CTA computes
  kScoreThreads = 256,  // of that CTA
  kScoreDepth = 16,     // elements of the vectors that it holds at a time
  kOrderThreads = 256,
};

// A [B, S, H, D] tensor of 16-bit elements, in any order of the first three. Rows [begin, end) are
// read and count, others do not.
struct SelectionTensor {
  const void* data;
  long long batch, head, row;
  int begin, end;
  int heads;   // H of this tensor
  int block;   // R or C
  int blocks;  // ceil(S / block)
};

struct PoolParams {
  SelectionTensor tensors[2];  // Q and K
  float* pooled[2];            // [B, H, blocks, D] of each
  int dim;                     // D
  int bfloat16;                // else fp16
  int maximum;                 // else the mean
  int padding;
};

// The blocks that a row may choose from: those that the pattern shows it, and where a coarse pass
// came first, those inside what that chose.
struct CandidateParams {
  const unsigned* visible;  // [visible_heads, rows, words]; entry h mod visible_heads is head h's
  const unsigned* coarse;   // [B, H, coarse_rows, coarse_words], or null
  int visible_heads;
  int heads;  // H
  int rows;
  int words;
  int coarse_factor;  // blocks of rows, and of columns, in a coarse one
  int coarse_rows;
  int coarse_words;
  int padding;
};

struct BlockScoreParams {
  CandidateParams candidates;
  const float* q;  // [B, H, rows, D]
  const float* k;  // [B, Hkv, columns, D]
  float* scores;   // [B, H, rows, words 32]
  int dim;
  int group;  // H / Hkv
  int columns;
  float scale;  // of the base-2 score: log2(e) times the problem's
};

struct AntidiagonalParams {
  CandidateParams candidates;
  SelectionTensor q, k;  // block: S; blocks: cells
  float* scores;         // [B, H, rows, parts, words 32]: log2 of a row of cells' sum in each block
  int dim;
  int bfloat16;
  int group;
  int parts;    // R / S
  int columns;  // of blocks
  // C / S: cells of a block in one row of cells. It divides kScoreTile (check_stride() of
  // src/selection/choose.cc), so that no block lies across two tiles.
  int cells;
  float scale;  // of a cell: log2(e) times the problem's, over S
  int padding;
};

struct SelectParams {
  CandidateParams candidates;
  float* scores;            // [B, H, rows, parts, words 32]; with parts > 1 overwritten
  const unsigned* forced;   // [visible_heads, rows, words]: blocks kept whatever their scores
  unsigned* chosen;         // [B, H, rows, words]
  unsigned long long mass;  // wanted of 2^20; 0: by count alone
  int most;                 // blocks of a row, unless more are forced
  int parts;                // rows of scores that make one row of blocks, as far as they exist
  int score_rows;           // rows of scores that exist, over all rows of blocks
  int padding;
};

// The caller's indices, -1 for none. Indices outside the row and blocks that are not visible are
// left out.
struct MarkParams {
  const int* given;         // [B, H, rows, most]
  const unsigned* visible;  // [visible_heads, rows, words]
  const unsigned* forced;
  unsigned* chosen;
  int heads;
  int rows;
  int columns;
  int words;
  int visible_heads;
  int most;
};

// Chosen blocks as ascending indices; unused places are -1.
struct ExportParams {
  const unsigned* chosen;
  int* indices;  // [B, H, rows, most]
  int heads;
  int rows;
  int words;
  int most;
};

// From chosen blocks to a TileList: the tiles of the base list that hold a chosen block.
struct ListTilesParams {
  TileListParams base;
  const unsigned* chosen;      // [B, H, rows, words]
  int* counts;                 // [B, H, row_tiles]: written first, read when the list is filled
  const long long* row_begin;  // of the new list; null: count only
  unsigned* tiles;
  int* tile_masks;       // null where no block is smaller than a tile
  unsigned* mask_words;  // words_of_tile for each entry
  int heads;
  int rows;  // of blocks
  int words;
  int block_rows, block_columns;  // R, C
  int tile_rows, tile_columns;    // M, N
  int seq_q, seq_k;
  int granule_row_shift, granule_column_shift;
  int words_of_tile;
};

struct OrderRowsParams {
  const int* counts;     // [B, H, row_tiles]
  long long* row_begin;  // [B, H, row_tiles + 1]
  int* row_order;        // [B, H, row_tiles]
  long long capacity;    // entries between the lists
  long long first;       // entry that the first list begins with
  int heads;
  int row_tiles;
};

}  // namespace annulus::kernels

#endif  // ANNULUS_PARAMS_SELECTION_PARAMS_H_
