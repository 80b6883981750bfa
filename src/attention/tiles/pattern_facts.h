#ifndef ANNULUS_ATTENTION_TILES_PATTERN_FACTS_H_
#define ANNULUS_ATTENTION_TILES_PATTERN_FACTS_H_

// Facts about a pattern's tiles that are known before a list is made: the size of its blocks, and
// which heads and tile rows see the same. The heuristic chooses by these facts, because making a
// list takes time, and every size of tile has its own list.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "annulus/problem.h"
#include "params/attention_params.h"
#include "pattern/node_pointer.h"

namespace annulus::attention {

// The size of the smallest blocks of a pattern's leaves. There is no limit if no leaf has blocks.
struct Blocks {
  std::int64_t rows = std::numeric_limits<std::int64_t>::max();
  std::int64_t columns = std::numeric_limits<std::int64_t>::max();
  bool scattered = false;  // neighbouring rows of blocks have little in common
};
Blocks finest_blocks(const pattern::Node& node);

// Why groups of `heads` query heads do not share one head of K and V, or nullopt if they do.
std::optional<std::string> why_not_one_kv_head(const Problem& problem, int heads);

// Why groups of `heads` heads do not share K and V or do not see the same keys, or nullopt if the
// pattern shows that they do.
std::optional<std::string> why_not_together(const Problem& problem, int heads);

// Whether the pattern ensures that pairs of neighbouring tile rows make the same steps, and that no
// position is read for a row after the last one. False for a pattern that needs positions if rows
// or keys are several segments.
bool rows_are_alike(const Problem& problem, std::int64_t tile_rows, std::int64_t tile_columns,
                    kernels::Positions positions);

// Whether the problem is only a band of keys with scaled scores, so a kernel reads no tables, no
// positions, and no list of single tiles.
bool is_plain(const Problem& problem, kernels::Positions positions);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_TILES_PATTERN_FACTS_H_
