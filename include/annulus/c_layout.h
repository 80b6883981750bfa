#ifndef ANNULUS_C_LAYOUT_H_
#define ANNULUS_C_LAYOUT_H_

// The C interface of block layouts, their cache, and the formats and files of other libraries: see
// annulus/layout.h for the full meaning, and annulus/c.h for the conventions.
//
//   annulus_layout_make("causal & window(511,0)", NULL, &sizes, NULL, &layout);
//   annulus_layout_get(layout, &arrays);       // for annulus_problem.layout
//   annulus_layout_slice(layout, rows, 1, columns, 1, &shard);
//
// A layout is an immutable handle; functions that change a layout make another one. Its arrays
// belong to the handle and live as long as it. Functions that make, compare, convert or count a
// layout have the default limit of work, or the limit of annulus_work_scope_begin.

#include "annulus/c.h"
#include "annulus/c_ring.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct annulus_layout annulus_layout;

// The C form of annulus::LayoutSizes. rows = ceil(Sq / R), columns = ceil(Sk / C).
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

// The C form of annulus::LayoutOptions.
typedef struct annulus_layout_options {
  size_t struct_size;
  int64_t layer;           // layer of the model; random() depends on it
  int32_t threads;         // host threads; 0: up to one per core, 1: only the caller's
  annulus_device* device;  // makes the same layout by kernels on this device; null: on the host
  int64_t max_work;        // limit of all threads together; see annulus_work_limit
  const volatile int32_t* cancel;
} annulus_layout_options;
#define ANNULUS_LAYOUT_OPTIONS_INIT \
  { sizeof(annulus_layout_options), 0, 0, NULL, 0, NULL }

// ---- Making, reading, destroying

// Calls annulus::make_layout. `blocks` is the layout of blocks() in the text.
ANNULUS_EXPORT annulus_status annulus_layout_make(const char* pattern,
                                                  const annulus_block_layout* blocks,
                                                  const annulus_layout_sizes* sizes,
                                                  const annulus_layout_options* options,
                                                  annulus_layout** layout);
// Checks the caller's arrays and copies them.
ANNULUS_EXPORT annulus_status annulus_layout_create(const annulus_block_layout* arrays,
                                                    annulus_layout** layout);
ANNULUS_EXPORT annulus_status annulus_layout_destroy(annulus_layout* layout);

// Stores pointers to the layout's arrays; null for empty ones.
ANNULUS_EXPORT annulus_status annulus_layout_get(annulus_layout* layout,
                                                 annulus_block_layout* arrays);

// The C form of annulus::PictureOptions.
typedef struct annulus_picture_options {
  size_t struct_size;
  int64_t head;       // query head
  int64_t max_cells;  // cells of a row and of a column; 0: 64 for text, 256 for SVG
  int32_t svg;        // 0: text with '#' full, '+' partial and '.' not kept; 1: an SVG document
} annulus_picture_options;
#define ANNULUS_PICTURE_OPTIONS_INIT \
  { sizeof(annulus_picture_options), 0, 0, 0 }

// ---- Layouts from layouts. Operands agree in R, C, Sq and Sk, and have 1 head or H heads.

ANNULUS_EXPORT annulus_status annulus_layout_unite(annulus_layout* a, annulus_layout* b,
                                                   annulus_layout** result);
ANNULUS_EXPORT annulus_status annulus_layout_intersect(annulus_layout* a, annulus_layout* b,
                                                       annulus_layout** result);
// The blocks of a that are not in b.
ANNULUS_EXPORT annulus_status annulus_layout_subtract(annulus_layout* a, annulus_layout* b,
                                                      annulus_layout** result);
// Exchanges row blocks and column blocks.
ANNULUS_EXPORT annulus_status annulus_layout_transpose(annulus_layout* layout,
                                                       annulus_layout** result);
// The layout of a shard (see annulus::slice). It has the segments' rows and columns.
ANNULUS_EXPORT annulus_status annulus_layout_slice(annulus_layout* layout,
                                                   const annulus_segment* rows, size_t row_count,
                                                   const annulus_segment* columns,
                                                   size_t column_count, annulus_layout** result);
// The layout of blocks of this size that contain a pair of a kept block.
ANNULUS_EXPORT annulus_status annulus_layout_reblock(annulus_layout* layout, int64_t block_rows,
                                                     int64_t block_columns,
                                                     annulus_layout** result);
// share_heads stores heads with equal blocks once, part_heads stores each head separately, and head
// makes the layout of one head.
ANNULUS_EXPORT annulus_status annulus_layout_share_heads(annulus_layout* layout,
                                                         annulus_layout** result);
ANNULUS_EXPORT annulus_status annulus_layout_part_heads(annulus_layout* layout,
                                                        annulus_layout** result);
ANNULUS_EXPORT annulus_status annulus_layout_head(annulus_layout* layout, int64_t head,
                                                  annulus_layout** result);

// ---- Arrays of other libraries

typedef enum annulus_layout_format {
  ANNULUS_LAYOUT_OWN = 0,  // the library's own file
  ANNULUS_LAYOUT_NPY = 1,  // file: a NumPy array of the mask
  // mask, UINT8 [heads, rows, columns]: 0 not kept, 1 full, 2 partial. A file has only its bytes.
  ANNULUS_LAYOUT_MASK = 2,
  // indptr, INT64 (INT32 is read too) [heads rows + 1]; indices, INT32 [kept]; partial, UINT8.
  ANNULUS_LAYOUT_CSR = 3,
  ANNULUS_LAYOUT_COO = 4,  // heads, rows, columns, INT32 [kept]; partial, UINT8
  // kept and partial, UINT32 [heads, rows, ceil(columns / 32)], lowest bit first.
  ANNULUS_LAYOUT_BITSET = 5,
  ANNULUS_LAYOUT_TOPK = 6,  // indices, INT32 [heads, rows, k], padded with -1; partial, UINT8
  // kv_num_blocks, INT32 [heads, rows]; kv_indices, INT32 [heads, rows, width]; and full_kv_*.
  ANNULUS_LAYOUT_FLEX = 7,
  // indptr, INT32 [rows + 1]; indices, INT32 [kept]; mask, UINT8 [kept, R, C]. The mask is read, as
  // smaller blocks that represent it exactly, but not written.
  ANNULUS_LAYOUT_FLASHINFER = 8
} annulus_layout_format;

typedef enum annulus_array_type {
  ANNULUS_UINT8 = 1,
  ANNULUS_INT32 = 2,
  ANNULUS_UINT32 = 3,
  ANNULUS_INT64 = 4
} annulus_array_type;

// One of the arrays of a format, row-major.
typedef struct annulus_array {
  const char* name;  // "indptr", "indices", ...
  const void* data;
  size_t count;  // elements
  int32_t type;  // annulus_array_type
} annulus_array;

typedef struct annulus_arrays annulus_arrays;

// Makes a layout from the caller's arrays, which may have any order. Optional arrays (partial,
// full_kv_*, mask, and the heads of COO if there is one head) may be missing. An error names the
// first bad entry. `format` is an annulus_layout_format; OWN and NPY exist only as files and are
// ANNULUS_INVALID_ARGUMENT.
ANNULUS_EXPORT annulus_status annulus_layout_from_arrays(int32_t format,
                                                         const annulus_layout_sizes* sizes,
                                                         const annulus_array* arrays, size_t count,
                                                         annulus_layout** layout);
// Writes the layout to arrays of a format; ANNULUS_UNSUPPORTED or ANNULUS_INVALID_ARGUMENT if the
// format cannot represent it.
ANNULUS_EXPORT annulus_status annulus_layout_to_arrays(annulus_layout* layout, int32_t format,
                                                       annulus_arrays** arrays);
// Writes MInference's lists of a pattern of vertical_slash(): verticals and slashes, INT32,
// ascending, each [heads, n] and padded with -1. ANNULUS_UNSUPPORTED for another pattern.
ANNULUS_EXPORT annulus_status annulus_pattern_to_vertical_slash(const char* pattern, int64_t heads,
                                                                annulus_arrays** arrays);

// Stores one of the arrays, whose data lives as long as the handle. An unknown name is
// ANNULUS_INVALID_ARGUMENT, with a message that lists the names.
ANNULUS_EXPORT annulus_status annulus_arrays_get(annulus_arrays* arrays, const char* name,
                                                 annulus_array* array);
ANNULUS_EXPORT annulus_status annulus_arrays_destroy(annulus_arrays* arrays);

// ---- Files

// Both functions read the library's own file: load copies it into memory, and map maps it without a
// copy. Another process may replace a mapped file, but must not change or shorten it in place,
// which would end this process.
ANNULUS_EXPORT annulus_status annulus_layout_load(const char* path, annulus_layout** layout);
ANNULUS_EXPORT annulus_status annulus_layout_map(const char* path, annulus_layout** layout);
// Replaces the whole file or leaves it unchanged.
ANNULUS_EXPORT annulus_status annulus_layout_save(annulus_layout* layout, const char* path);

// Reads a file of any format. Sizes of 0 are taken from the file, and null sizes are all 0; other
// sizes must agree with the file.
ANNULUS_EXPORT annulus_status annulus_layout_import(const char* path, int32_t format,
                                                    const annulus_layout_sizes* sizes,
                                                    annulus_layout** layout);
ANNULUS_EXPORT annulus_status annulus_layout_export(annulus_layout* layout, const char* path,
                                                    int32_t format);

// ---- The cache: it keeps one layout for all lengths with the same blocks

typedef struct annulus_layout_cache annulus_layout_cache;
typedef struct annulus_layout_query annulus_layout_query;

ANNULUS_EXPORT annulus_status annulus_layout_cache_create(const annulus_cache_limits* limits,
                                                          annulus_layout_cache** cache);
// Layouts that the cache returned stay valid.
ANNULUS_EXPORT annulus_status annulus_layout_cache_destroy(annulus_layout_cache* cache);
ANNULUS_EXPORT annulus_status annulus_layout_cache_clear(annulus_layout_cache* cache);
ANNULUS_EXPORT annulus_status annulus_layout_cache_get_counters(annulus_layout_cache* cache,
                                                                annulus_cache_counters* counters);

// The C form of annulus::LayoutQuery: everything that decides a layout except the lengths.
ANNULUS_EXPORT annulus_status annulus_layout_query_create(const char* pattern,
                                                          const annulus_block_layout* blocks,
                                                          int64_t block_rows, int64_t block_columns,
                                                          int64_t heads, int64_t layer,
                                                          annulus_layout_query** query);
ANNULUS_EXPORT annulus_status annulus_layout_query_destroy(annulus_layout_query* query);
// Two keys are equal if and only if the layouts are equal.
ANNULUS_EXPORT annulus_status annulus_layout_query_key(annulus_layout_query* query, int64_t seq_q,
                                                       int64_t seq_k, annulus_text** key);

// Makes a handle of a layout that shares its blocks with the cache. Block (i, j) has the queries at
// positions *q_position + [i R, (i + 1) R) and the keys at [j C, (j + 1) C). `limit` is for the
// work of making a missing layout; null is the default.
ANNULUS_EXPORT annulus_status annulus_layout_cache_get(
    annulus_layout_cache* cache, annulus_layout_query* query, int64_t seq_q, int64_t seq_k,
    const annulus_work_limit* limit, annulus_layout** layout, int64_t* q_position);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ANNULUS_C_LAYOUT_H_
