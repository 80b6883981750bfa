#ifndef ANNULUS_PARAMS_SELECTION_PARAMS_H_
#define ANNULUS_PARAMS_SELECTION_PARAMS_H_

// The arguments of the kernels that choose blocks on the device and list them for the attention
// kernels: the contract between the host (src/selection) and the templates. Plain C++ without
// includes, like attention_params.h.
//
// Block (i, j) has rows [i R, (i + 1) R) of Q and rows [j C, (j + 1) C) of K, as far as they exist.
// A set of blocks is bits: word w of a row of blocks holds columns 32 w to 32 w + 31, lowest first;
// bits beyond the last column are 0. Strides count elements.

#include "params/attention_params.h"

namespace annulus::kernels {

enum : int {
  kSelectionThreads = 128,  // threads of a CTA of every kernel here, unless stated otherwise
  kSelectionWarps = kSelectionThreads / 32,
  kScoreTile = 64,      // rows and columns of the scores that one CTA computes
  kScoreThreads = 256,  // threads of that CTA
  kScoreDepth = 16,     // elements of the vectors that it stages at a time
  kOrderThreads = 256,
};

// A [B, S, H, D] tensor of 16-bit elements, in any order of the first three. Rows [begin, end) are
// read and count; other rows do not.
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
  float* pooled[2];            // [B, H, blocks, D] for each tensor
  int dim;                     // D
  int bfloat16;                // 1 for bf16, 0 for fp16
  int maximum;                 // 1 for the maximum, 0 for the mean
  int padding;
};

// The blocks that a row may choose from: those that the pattern shows, and after a coarse pass only
// those inside the chosen coarse blocks.
struct CandidateParams {
  const unsigned* visible;  // [visible_heads, rows, words]; entry h mod visible_heads is head h's
  const unsigned* coarse;   // [B, H, coarse_rows, coarse_words], or null
  int visible_heads;
  int heads;  // H
  int rows;
  int words;
  int coarse_factor;  // blocks of rows, and of columns, in a coarse block
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
  float scale;  // scale of the base-2 score: log2(e) times the problem's scale
};

struct AntidiagonalParams {
  CandidateParams candidates;
  SelectionTensor q, k;  // here `block` is S, and `blocks` are cells
  float* scores;  // [B, H, rows, parts, words 32]: log2 of the sum over a row of cells in each
                  // block
  int dim;
  int bfloat16;
  int group;
  int parts;    // R / S
  int columns;  // columns of blocks
  // C / S: cells of a block in one row of cells. It divides kScoreTile (check_stride() of
  // src/selection/choose.cc), so no block is in two tiles.
  int cells;
  float scale;  // scale of a cell: log2(e) times the problem's scale, divided by S
  int padding;
};

struct SelectParams {
  CandidateParams candidates;
  float* scores;            // [B, H, rows, parts, words 32]; overwritten if parts > 1
  const unsigned* forced;   // [visible_heads, rows, words]: blocks kept whatever their scores
  unsigned* chosen;         // [B, H, rows, words]
  unsigned long long mass;  // wanted share of the mass, in units of 2^-20; 0: only the count
                            // matters
  int most;                 // most blocks of a row, unless more are forced
  int parts;                // rows of scores in one row of blocks, as far as they exist
  int score_rows;           // rows of scores that exist, in all rows of blocks together
  int padding;
};

// The caller's indices; -1 means no block. Indices outside of the row and blocks that are not
// visible are left out.
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

// Makes a TileList of chosen blocks: the tiles of the base list that hold a chosen block.
struct ListTilesParams {
  TileListParams base;
  const unsigned* chosen;      // [B, H, rows, words]
  int* counts;                 // [B, H, row_tiles]: written first, read when the list is filled
  const long long* row_begin;  // begins of the new list's rows; null: the kernel only counts
  unsigned* tiles;
  int* tile_masks;       // null if no block is smaller than a tile
  unsigned* mask_words;  // words_of_tile for each entry
  int heads;
  int rows;  // rows of blocks
  int words;
  int block_rows, block_columns;  // R and C
  int tile_rows, tile_columns;    // M and N
  int seq_q, seq_k;
  int granule_row_shift, granule_column_shift;
  int words_of_tile;
};

struct OrderRowsParams {
  const int* counts;     // [B, H, row_tiles]
  long long* row_begin;  // [B, H, row_tiles + 1]
  int* row_order;        // [B, H, row_tiles]
  long long capacity;    // entries from the start of one list to the start of the next
  long long first;       // the entry with which the first list begins
  int heads;
  int row_tiles;
};

}  // namespace annulus::kernels

#endif  // ANNULUS_PARAMS_SELECTION_PARAMS_H_
