#ifndef ANNULUS_C_API_STEP_H_
#define ANNULUS_C_API_STEP_H_

// Converts the structs that batches and appending share from C to C++.

#include "annulus/batch.h"
#include "annulus/c_batch.h"
#include "c_api/call.h"

namespace annulus::c_api {

inline BatchBounds bounds_of(const annulus_batch_bounds& c) {
  return {.requests = c.requests,
          .rows = c.rows,
          .rows_of_one = c.rows_of_one,
          .keys_of_one = c.keys_of_one,
          .keys = c.keys};
}

inline KeyInterleave interleave_of(const annulus_key_interleave& c) {
  return {.block = c.block, .ranks = c.ranks, .rank = c.rank};
}

inline BatchStrides strides_of(const annulus_batch_strides& c) { return {c.page, c.row, c.head}; }
inline RowStrides strides_of(const annulus_row_strides& c) { return {c.row, c.head}; }

inline BatchMetadata metadata_of(const annulus_batch_metadata* given) {
  constexpr StructName kName = {"annulus_batch_metadata", "ANNULUS_BATCH_METADATA_INIT"};
  const annulus_batch_metadata c =
      read_struct(kName, given, annulus_batch_metadata ANNULUS_BATCH_METADATA_INIT);
  const auto table = [](const annulus_page_table& pages) -> PageTable {
    return {pages.ids, pages.begin, pages.width};
  };
  return {.q_begin = c.q_begin,
          .k_length = c.k_length,
          .requests = c.requests,
          .k_position = c.k_position,
          .k_pages = table(c.k_pages),
          .v_pages = table(c.v_pages),
          .k_begin = c.k_begin,
          .v_begin = c.v_begin,
          .blocks = c.blocks,
          .row_end = c.row_end,
          .tree_bits = c.tree_bits,
          .k_entries = c.k_entries,
          .v_entries = c.v_entries};
}

}  // namespace annulus::c_api

#endif  // ANNULUS_C_API_STEP_H_
