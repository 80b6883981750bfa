#ifndef ANNULUS_TESTS_LAYOUT_SAMPLE_LAYOUT_H_
#define ANNULUS_TESTS_LAYOUT_SAMPLE_LAYOUT_H_

// Random layouts, and the state of single pairs in a layout.

#include <algorithm>
#include <string>
#include <vector>

#include "annulus/layout.h"
#include "pattern/random_pattern.h"

namespace annulus::test {

// Random blocks with the sizes of `like`. Each is kept with some probability, and partial with
// another.
inline BlockLayout random_blocks(base::Random* random, BlockLayout like, std::int64_t heads) {
  like.heads = heads;
  like.indptr = {0};
  like.indices.clear();
  like.partial.clear();
  const std::uint32_t kept_of_8 = random->below(9);
  const std::uint32_t partial_of_8 = random->below(9);
  for (std::int64_t line = 0; line < heads * like.rows(); ++line) {
    for (std::int64_t column = 0; column < like.columns(); ++column) {
      if (random->below(8) >= kept_of_8) continue;
      like.indices.push_back(static_cast<std::int32_t>(column));
      like.partial.push_back(random->below(8) < partial_of_8 ? 1 : 0);
    }
    like.indptr.push_back(static_cast<std::int64_t>(like.indices.size()));
  }
  if (std::count(like.partial.begin(), like.partial.end(), 1) == 0) like.partial.clear();
  return like;
}

// Random lengths from 0 to `most`, and blocks of 1 to 20.
inline BlockLayout random_sizes(base::Random* random, std::int64_t most = 120) {
  BlockLayout layout;
  layout.block_rows = between(random, 1, 20);
  layout.block_columns = between(random, 1, 20);
  layout.seq_q = between(random, 0, most);
  layout.seq_k = between(random, 0, most);
  return layout;
}

// The state of a block by its row and column: 0 not kept, 1 full, 2 partial.
inline int state_at(const LayoutView& layout, std::int64_t head, std::int64_t row,
                    std::int64_t column) {
  head = layout.heads == 1 ? 0 : head;
  const auto kept = layout.row(head, row / layout.block_rows);
  const auto flags = layout.partial_row(head, row / layout.block_rows);
  const auto found = std::lower_bound(kept.begin(), kept.end(), column / layout.block_columns);
  if (found == kept.end() || *found != column / layout.block_columns) return 0;
  return !flags.empty() && flags[static_cast<std::size_t>(found - kept.begin())] != 0 ? 2 : 1;
}

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_LAYOUT_SAMPLE_LAYOUT_H_
