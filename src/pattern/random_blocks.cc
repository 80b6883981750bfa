#include "pattern/random_blocks.h"

#include <algorithm>

#include "base/fail.h"
#include "base/random.h"

namespace annulus::pattern {

std::int64_t random_columns(const Node& leaf, const PatternContext& context) {
  if (context.seq_k < 0) {
    base::fail(ErrorCode::kInvalidArgument,
               "random({}, {}, {}) chooses among the blocks of the whole sequence; say how many "
               "keys that has (PatternContext::seq_k)",
               leaf.first, leaf.second, leaf.third);
  }
  if (context.layer < 0 || context.layer >= std::int64_t{1} << 32) {
    base::fail(ErrorCode::kInvalidArgument, "layer {}; random() knows layers from 0 to 2^32 - 1",
               context.layer);
  }
  return context.seq_k / leaf.third + (context.seq_k % leaf.third != 0);
}

void choose_columns(const Node& leaf, std::int64_t head, std::int64_t block_row,
                    std::int64_t columns, const PatternContext& context,
                    std::vector<std::int64_t>* chosen) {
  chosen->clear();
  const std::int64_t count = std::min(leaf.first, columns);
  if (count == columns) {  // nothing to choose
    for (std::int64_t column = 0; column < columns; ++column) chosen->push_back(column);
    return;
  }
  const auto seed = static_cast<std::uint64_t>(leaf.second);
  const auto low = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
  for (std::int64_t draw = 0; draw < count; ++draw) {
    const std::int64_t top = columns - count + draw;
    const auto words = base::philox(
        {low(static_cast<std::uint64_t>(draw)), low(static_cast<std::uint64_t>(block_row)),
         low(static_cast<std::uint64_t>(head)), low(static_cast<std::uint64_t>(context.layer))},
        {low(seed), low(seed >> 32)});
    const std::uint64_t word = words[0] | static_cast<std::uint64_t>(words[1]) << 32;
    __extension__ using Wide = unsigned __int128;
    const auto t = static_cast<std::int64_t>(
        static_cast<std::uint64_t>(Wide{word} * static_cast<std::uint64_t>(top + 1) >> 64));
    const auto place = std::lower_bound(chosen->begin(), chosen->end(), t);
    // All that was taken is below top.
    if (place != chosen->end() && *place == t) {
      chosen->push_back(top);
    } else {
      chosen->insert(place, t);
    }
  }
}

}  // namespace annulus::pattern
