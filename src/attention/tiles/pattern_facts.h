#ifndef ANNULUS_ATTENTION_TILES_PATTERN_FACTS_H_
#define ANNULUS_ATTENTION_TILES_PATTERN_FACTS_H_

// What a pattern tells about its tiles before any list is made: the size of its blocks, and which
// heads and tile rows see the same. The heuristic chooses by these facts, because a list costs time
// and there is one for every size of tile.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "annulus/attention.h"
#include "pattern/node.h"

namespace annulus::attention {

// The smallest blocks that a pattern speaks of; those of a pattern without blocks have no end.
struct Blocks {
  std::int64_t rows = std::numeric_limits<std::int64_t>::max();
  std::int64_t columns = std::numeric_limits<std::int64_t>::max();
  bool scattered = false;  // neighbouring rows of blocks have little in common
};
Blocks finest_blocks(const pattern::Node& node);

// Why `heads` query heads do not share one head of K and V; nothing where they do.
std::optional<std::string> why_not_one_kv_head(const Problem& problem, int heads);

// Why `heads` heads do not share K and V and what they see of them, as far as the pattern tells.
std::optional<std::string> why_not_together(const Problem& problem, int heads);

// Whether the pattern promises that neighbouring tile rows make the same steps, in pairs, and that
// no position is read for a row behind the last. placed: positions are read row by row.
bool rows_are_alike(const Problem& problem, std::int64_t tile_rows, std::int64_t tile_columns,
                    bool placed);

// Whether a kernel has nothing to compute but a band of keys and scaled scores.
bool is_plain(const Problem& problem, bool placed);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_TILES_PATTERN_FACTS_H_
