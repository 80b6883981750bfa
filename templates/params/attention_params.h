#ifndef ANNULUS_PARAMS_ATTENTION_PARAMS_H_
#define ANNULUS_PARAMS_ATTENTION_PARAMS_H_

// The one argument of every attention kernel: the contract between the host (src/attention) and the
// templates. Plain C++: NVRTC and the host compiler both read it, so both see the same bytes.
// Everything here is a run-time value; no value here needs a new kernel.
//
// B is the batch, H the query heads, Hkv the key/value heads, Sq and Sk the lengths, Dqk and Dv the
// head dims. One compute tile has M rows and N columns. Strides count elements.

#include "params/tile_order_params.h"

namespace annulus::kernels {

enum : int { kMaskNumbers = 32, kScoreNumbers = 24 };

// How a product q.k becomes the base-2 score t = log2(e) * score. Softmax sums exp2(t). It is a
// constant of the kernel, and AttentionParams::scale and softcap depend on it. If the kernel has a
// score expression (tile/score_mod.cuh), neither of them contains log2(e): the expression gets the
// score itself, and Score is kAnyScale or kSoftcap.
enum class Score : int {
  // t = scale * q.k, scale > 0 (log2(e) folded in). The scaling becomes part of the exponential's
  // argument, one fused multiply-add per element, and the largest product has the largest score.
  kPositiveScale = 0,
  // t = scale * q.k for any scale, element by element before masking. A negative scale reverses the
  // order of scores, a scale of zero turns a masked -inf into NaN, and with a huge scale the
  // rounding of the row max is larger than any exponent.
  kAnyScale = 1,
  // t = softcap * tanh(scale * q.k), with softcap = log2(e) * c and scale divided by c.
  kSoftcap = 2,
};

// How a kernel computes the positions of rows and keys: a constant of the kernel.
enum class Positions : int {
  kOneSegment = 0,   // row i is at q_position + i, key j at k_position + j
  kTwoSegments = 1,  // the same in each of at most two segments of Q, and of K (SecondSegment)
  kOfRows = 2,       // read from q_positions and k_positions, row by row
};

// The second segment of a tensor, which is at other positions than the rows before it. Its tiles
// begin with its first row, so the last tile of the first segment may overlap rows of the second,
// which do not belong to the tile. In a tensor of one segment, `tile` is 2^31 - 1, and `first` is
// Sq or Sk.
struct SecondSegment {
  int tile;      // the first tile of the segment
  int first;     // the first row of the segment
  int shift;     // first - tile * rows of a tile
  int position;  // position of a row of the segment minus the row's number
};

// The numbers and lists of a mask expression. The text of the mask in the specialised source names
// their slots and so defines their meaning (src/pattern/mask_code.h).
struct MaskParams {
  const int* lists;           // all lists of the expression, one after another
  int numbers[kMaskNumbers];  // the expression's numbers; offsets and lengths of its lists
};

// A TileList on the device. With TileOrder::kList, row r of list L is tiles[row_begin[L *
// (row_tiles + 1) + r]] up to row_begin[... + r + 1], in ascending order of column tiles. Pointers
// that a tile order does not read are null.
struct TileListParams {
  const long long* row_begin;  // [lists, row_tiles + 1], kList
  const unsigned* tiles;       // column tile * 2 + partial, kList
  const int* tile_masks;       // per tile, where the expression has blocks(): index of its
                               // first word in mask_words, or -1 all visible, -2 none visible;
                               // null if all is visible in every tile
  const unsigned* mask_words;  // M/granule_rows x N/granule_columns bits, row-major, lowest
                               // bit first, each tile starting a new word
  const int* row_order;        // [lists, row_tiles]: tile row that CTA x takes, longest first;
                               // null with kBand and with groups
  const int* head_list;        // [distinct batches, H]: which list a query head of a batch uses,
                               // Shape::kDistinctBatches; null: list 0 for all
  const RowRuns* runs;         // [lists, row_tiles], kRuns; with groups their records and steps
  const RowGroup* groups;      // [lists, group_count], kRuns; null: there is a record for each row
  RowBand band;                // kBand
  int row_tiles;               // ceil(Sq / M)
  int granule_row_shift;       // log2 of the rows that share one mask bit
  int granule_column_shift;
  int batch_lists;       // batch b's lists begin that many times b further on; 0: all batches share
  int group_count;       // groups of the list with the most groups
  int distinct_batches;  // batches that see different keys; only general kernels read it
};

enum : int { kMergeWarps = 4 };  // warps of a CTA of combine_splits

// Some consecutive tiles of a tile row: the work of one CTA if rows are split (Shape::kSplit).
struct alignas(16) RowSegment {
  int row;    // -1: empty, in lists that have fewer segments than other lists
  int first;  // index of its first tile in the row
  int count;
  int slot;  // the slot of its state; -1: the segment is the whole row
};

// A split tile row, whose segments have neighbouring slots in the order of its tiles.
struct alignas(16) MergedRow {
  int row;
  int first_slot;
  int slots;  // 0: an empty entry
  int padding;
};

// The split of rows; null pointers if no row is split. A slot holds the state of M rows; rows
// beyond Sq are not used.
struct SplitParams {
  const RowSegment* segments;  // [lists, segment_count]: CTA x takes segment x
  const MergedRow* merged;     // [lists, merged_count]
  float* acc;                  // [B, H, slots, M, Dv]
  float* m;                    // [B, H, slots, M]
  float* l;                    // [B, H, slots, M]
  int segment_count;
  int merged_count;
  int slots;
  int padding;
};

// The terms of a score in addition to its product. log2(e) is folded in, except into slopes and
// bias if there is a score expression. Head h has entry h mod count.
struct ScoreParams {
  const float* slopes;  // [slope_count]: + slope (k - q); null if the kernel has no kAlibi
  const float* bias;    // [bias_count, 2 bias_reach + 1]: + entry q - k + bias_reach, the ends for
                        // larger distances; null if it has no kBias
  const float* sinks;  // [sink_count]: logits that join the sum of a row when O is written; null if
                       // it has no kSinkLogit
  int slope_count;
  int bias_count;
  int bias_reach;
  int sink_count;

  // The numbers and tables of the expression. The specialised source defines their meaning.
  const int* words;            // numbers beyond kScoreNumbers, then the tables
  int numbers[kScoreNumbers];  // integers, and the bits of fp32 numbers
};

// The scales of 8-bit operands. Row i of a head has the head's entry i >> shift; a null pointer
// stands for 1. A scale that is not from 0 to 2^125 counts as NaN.
struct ScaleParams {
  const float* q;  // [B, H, q_blocks]
  const float* k;  // [B, Hkv, k_blocks]
  const float* v;  // [B, Hkv, v_blocks]
  int q_shift, k_shift, v_shift;
  int q_blocks, k_blocks, v_blocks;
};

struct AttentionParams {
  const void* q;  // [B, Sq, H, Dqk] in any order of the first three, Dqk contiguous
  const void* k;  // [B, Sk, Hkv, Dqk]
  const void* v;  // [B, Sk, Hkv, Dv]
  void* o;        // [B, Sq, H, Dv]; unused if the state is carried out
  float* lse;     // [B, H, Sq] contiguous, or null

  // The running state (docs/architecture.md): contiguous fp32; acc is not normalised, and m is in
  // base 2.
  const float* acc_in;  // [B, H, Sq, Dv]
  const float* m_in;    // [B, H, Sq]
  const float* l_in;    // [B, H, Sq]
  float* acc_out;       // may be the same memory as acc_in
  float* m_out;
  float* l_out;

  long long q_batch, q_head, q_row;
  long long k_batch, k_head, k_row;
  long long v_batch, v_head, v_row;
  long long o_batch, o_head, o_row;

  // Positions::kOfRows: the position of each row; otherwise null. The arrays are padded to whole
  // tiles; the padding is not used.
  const int* q_positions;  // [ceil(Sq / M) M]
  const int* k_positions;  // [ceil(Sk / N) N]

  TileListParams tiles;
  SplitParams split;
  MaskParams mask;
  ScoreParams score;
  ScaleParams scales;  // used if Shape::Element has 8 bits

  int heads;       // H
  int group;       // H / Hkv
  int seq_q;       // Sq
  int seq_k;       // Sk
  int key_begin;   // first row of K and V that any row of Q sees
  int key_count;   // rows from there to the last one that any row of Q sees; only these are read
  int q_position;  // pos_q of row 0
  int k_position;  // pos_k of row 0
  SecondSegment q_second;  // Positions::kTwoSegments
  SecondSegment k_second;
  float scale;       // see Score
  float softcap;     // see Score
  float lse_factor;  // ln 2 for a natural LSE, 1 for base 2
  int first_batch;   // the launch's first batch in the whole problem, for score expressions and
                     // masks
  // Only general kernels read this: `scale` if softmax applies it in the exponent, as with
  // Score::kPositiveScale, else 1.
  float softmax_factor;
};

}  // namespace annulus::kernels

#endif  // ANNULUS_PARAMS_ATTENTION_PARAMS_H_
