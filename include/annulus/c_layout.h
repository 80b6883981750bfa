#ifndef ANNULUS_C_LAYOUT_H_
#define ANNULUS_C_LAYOUT_H_

// The C interface of block layouts: annulus/layout.h, annulus/layout_formats.h,
// annulus/device_layout.h and annulus/layout_cache.h. The conventions are those at the top of
// annulus/c.h.
//
//   annulus_layout_make("causal & window(511,0)", NULL, &sizes, NULL, &layout);
//   annulus_layout_get(layout, &arrays);       what annulus_problem.layout takes
//   annulus_layout_slice(layout, rows, 1, columns, 1, &shard);
//
// A layout is a handle and immutable; every function that changes one makes another. Its arrays
// belong to the handle: they stay until it is destroyed. Functions that make, compare, convert or
// count a layout have the default limit of work, or that of annulus_work_scope_begin.

#include "annulus/c.h"
#include "annulus/c_pattern.h"
#include "annulus/c_ring.h"  // annulus_segment

#ifdef __cplusplus
extern "C" {
#endif

typedef struct annulus_layout annulus_layout;

// The problem that a layout is for, and its blocks. rows = ceil(Sq / R), columns = ceil(Sk / C).
typedef struct annulus_layout_sizes {
  size_t struct_size;
  int64_t block_rows;     // R
  int64_t block_columns;  // C
  int64_t seq_q;          // Sq
  int64_t seq_k;          // Sk
  int64_t heads;          // query heads
} annulus_layout_sizes;

#define ANNULUS_LAYOUT_SIZES_INIT \
  { sizeof(annulus_layout_sizes), 0, 0, 0, 0, 1 }

typedef struct annulus_layout_options {
  size_t struct_size;
  int64_t layer;           // layer of the model: random() chooses anew in each
  int32_t threads;         // host threads; 0: one for each core, 1: only the caller's
  annulus_device* device;  // makes the layout with kernels, bit for bit the same; null: the host
  int64_t max_work;        // of all threads together; this and cancel as in annulus_work_limit
  const volatile int32_t* cancel;
} annulus_layout_options;

#define ANNULUS_LAYOUT_OPTIONS_INIT \
  { sizeof(annulus_layout_options), 0, 0, NULL, 0, NULL }

// ---- Making, reading, destroying

// The blocks of a pattern: those that hold a visible pair, partial where not all pairs are visible.
// Null options are the defaults.
ANNULUS_EXPORT annulus_status annulus_layout_make(const char* pattern,
                                                  const annulus_block_layout* blocks,
                                                  const annulus_layout_sizes* sizes,
                                                  const annulus_layout_options* options,
                                                  annulus_layout** layout);
// Checks the caller's arrays and copies them.
ANNULUS_EXPORT annulus_status annulus_layout_create(const annulus_block_layout* arrays,
                                                    annulus_layout** layout);
ANNULUS_EXPORT annulus_status annulus_layout_destroy(annulus_layout* layout);

// Lends the layout's arrays; null for those that are empty.
ANNULUS_EXPORT annulus_status annulus_layout_get(annulus_layout* layout,
                                                 annulus_block_layout* arrays);

typedef struct annulus_layout_statistics {
  size_t struct_size;
  int64_t rows;     // ceil(Sq / R)
  int64_t columns;  // ceil(Sk / C)
  int64_t heads;    // H; 1: any number
  int64_t distinct_heads;
  int64_t kept;          // blocks, over the distinct heads
  int64_t partial;       // partial blocks among them
  double block_density;  // of all query heads
  // Blocks of one row or column of one distinct head. Mean and ratio over all of them, empty ones
  // too.
  int64_t shortest_row;
  int64_t longest_row;
  int64_t empty_rows;
  int64_t shortest_column;
  int64_t longest_column;
  int64_t empty_columns;
  double row_imbalance;     // longest over mean: 1 is even; 0 where nothing is kept
  double column_imbalance;  // likewise
  double mean_distance;     // tokens between a kept block and the diagonal, 0 on it
  int64_t bytes;            // of the arrays
  // Set by annulus_pattern_statistics, 0 otherwise: the density of visible pairs, exact, and the
  // density of blocks over it.
  double pair_density;
  double overhead;
} annulus_layout_statistics;

#define ANNULUS_LAYOUT_STATISTICS_INIT                                                            \
  {                                                                                               \
    sizeof(annulus_layout_statistics), 0, 0, 0, 0, 0, 0, 0.0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0, 0, \
        0.0, 0.0                                                                                  \
  }

ANNULUS_EXPORT annulus_status annulus_layout_get_statistics(annulus_layout* layout,
                                                            annulus_layout_statistics* statistics);
// Counts the blocks of a pattern, and its pairs one by one. `options` as in annulus_layout_make;
// its device is not used.
ANNULUS_EXPORT annulus_status annulus_pattern_statistics(const char* pattern,
                                                         const annulus_block_layout* blocks,
                                                         const annulus_layout_sizes* sizes,
                                                         const annulus_layout_options* options,
                                                         annulus_layout_statistics* statistics);

// Writes shares [layers]: entry n - 1 is the share of (row block, column block) pairs for which n
// layers carry what is in the column to the row. ANNULUS_UNSUPPORTED above 2^34 pairs of blocks,
// ANNULUS_INVALID_ARGUMENT for layers outside [1, 1024].
ANNULUS_EXPORT annulus_status annulus_layout_reachability(annulus_layout* layout, int32_t layers,
                                                          double* shares);

typedef struct annulus_picture_options {
  size_t struct_size;
  int64_t head;       // query head
  int64_t max_cells;  // in a row and in a column; 0: 64 of a text, 256 of an SVG
  int32_t svg;        // 0: a text with '#' full, '+' partial and '.' not kept; 1: an SVG document
} annulus_picture_options;

#define ANNULUS_PICTURE_OPTIONS_INIT \
  { sizeof(annulus_picture_options), 0, 0, 0 }

// Null options are the defaults.
ANNULUS_EXPORT annulus_status annulus_layout_picture(annulus_layout* layout,
                                                     const annulus_picture_options* options,
                                                     annulus_text** picture);

// ---- Layouts from layouts. Operands agree in R, C, Sq and Sk, and are for 1 head or for H.

ANNULUS_EXPORT annulus_status annulus_layout_unite(annulus_layout* a, annulus_layout* b,
                                                   annulus_layout** result);
ANNULUS_EXPORT annulus_status annulus_layout_intersect(annulus_layout* a, annulus_layout* b,
                                                       annulus_layout** result);
// The blocks of a that are not in b.
ANNULUS_EXPORT annulus_status annulus_layout_subtract(annulus_layout* a, annulus_layout* b,
                                                      annulus_layout** result);
// Row blocks become column blocks.
ANNULUS_EXPORT annulus_status annulus_layout_transpose(annulus_layout* layout,
                                                       annulus_layout** result);
// Row i of the result is the i-th row that the segments name, and so for columns. A block of it is
// kept where it holds a pair of a kept block.
ANNULUS_EXPORT annulus_status annulus_layout_slice(annulus_layout* layout,
                                                   const annulus_segment* rows, size_t row_count,
                                                   const annulus_segment* columns,
                                                   size_t column_count, annulus_layout** result);
// A layout with blocks of this size that keeps the same pairs, and as few more as whole blocks
// need.
ANNULUS_EXPORT annulus_status annulus_layout_reblock(annulus_layout* layout, int64_t block_rows,
                                                     int64_t block_columns,
                                                     annulus_layout** result);
// Each distinct head gets round(density x rows x columns) blocks; added blocks are blocks of
// `within` where that is not null. annulus/layout.h says which blocks are dropped and added.
ANNULUS_EXPORT annulus_status annulus_layout_with_density(annulus_layout* layout, double density,
                                                          annulus_layout* within,
                                                          annulus_layout** result);
// share_heads stores heads that keep the same blocks once, part_heads stores each head by itself,
// and head gives the layout of one head.
ANNULUS_EXPORT annulus_status annulus_layout_share_heads(annulus_layout* layout,
                                                         annulus_layout** result);
ANNULUS_EXPORT annulus_status annulus_layout_part_heads(annulus_layout* layout,
                                                        annulus_layout** result);
ANNULUS_EXPORT annulus_status annulus_layout_head(annulus_layout* layout, int64_t head,
                                                  annulus_layout** result);

typedef struct annulus_layout_difference {
  size_t struct_size;
  int64_t only_first;  // blocks kept by the first alone, over all query heads
  int64_t only_second;
  int64_t flags;       // blocks kept by both and partial in one
  int32_t same_sizes;  // 0: the counts are 0 and the text says which sizes differ
} annulus_layout_difference;

#define ANNULUS_LAYOUT_DIFFERENCE_INIT \
  { sizeof(annulus_layout_difference), 0, 0, 0, 1 }

// `text`, where it is not null, gets a line for each row of blocks that differs, at most max_lines
// of them; empty: no difference.
ANNULUS_EXPORT annulus_status annulus_layout_compare(annulus_layout* first, annulus_layout* second,
                                                     int64_t max_lines,
                                                     annulus_layout_difference* difference,
                                                     annulus_text** text);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ANNULUS_C_LAYOUT_H_
