#ifndef ANNULUS_TESTS_PATTERN_RANDOM_PATTERN_H_
#define ANNULUS_TESTS_PATTERN_RANDOM_PATTERN_H_

// Random layouts and random trees over positions of about -100 to 200, for property tests.

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "annulus/pattern.h"
#include "annulus/types.h"
#include "base/random.h"

namespace annulus::test {

inline std::int64_t between(base::Random* random, std::int64_t low, std::int64_t high) {
  return low + random->below(static_cast<std::uint32_t>(high - low + 1));
}

inline BlockLayout random_layout(base::Random* random, std::int64_t seq_q, std::int64_t seq_k,
                                 std::int64_t heads = 1) {
  BlockLayout layout;
  layout.block_rows = between(random, 1, 20);
  layout.block_columns = between(random, 1, 20);
  layout.seq_q = seq_q;
  layout.seq_k = seq_k;
  layout.heads = heads;
  layout.indptr = {0};
  const std::uint32_t kept_of_8 = random->below(9);
  for (std::int64_t line = 0; line < heads * layout.rows(); ++line) {
    for (std::int64_t column = 0; column < layout.columns(); ++column) {
      if (random->below(8) >= kept_of_8) continue;
      layout.indices.push_back(static_cast<std::int32_t>(column));
    }
    layout.indptr.push_back(static_cast<std::int64_t>(layout.indices.size()));
  }
  return layout;
}

inline std::vector<std::int64_t> random_list(base::Random* random, std::size_t most) {
  std::set<std::int64_t> values;
  const std::uint32_t count = random->below(static_cast<std::uint32_t>(most) + 1);
  for (std::uint32_t i = 0; i < count; ++i) values.insert(between(random, -60, 160));
  return {values.begin(), values.end()};
}

inline std::vector<HierarchyLevel> random_levels(base::Random* random) {
  std::vector<HierarchyLevel> levels(1 + random->below(3));
  for (HierarchyLevel& level : levels) {
    level = {between(random, 1, 6), between(random, -1, 8), between(random, 1, 9)};
  }
  return levels;
}

// Leaves that were added later. They are made from the two numbers in [-1, 40] that are drawn for a
// window. So a seed still gives the same pattern in all other respects.
inline Pattern newer_leaf(std::int64_t a, std::int64_t b) {
  const std::int64_t low = std::min(a, b), high = std::max(a, b);
  switch ((3 * a + b + 4) % 6) {
    case 0:
      return queries(4 * a - 50, 4 * a - 50 + 3 * (b + 1));
    case 1:
      return keys(4 * a - 50, 4 * a - 50 + 3 * (b + 1));
    case 2:
      return every(high + 2, low + 1);
    case 3:
      return window(-2 - low, 2 + high);
    case 4:
      return window(2 + high, -2 - low);
    default:
      return head_groups(1 + (a + 1) % 3, {window(a, b), keys(a, a + 30), causal()});
  }
}

// Any leaf of the language. If `layout` is null, blocks() is left out.
inline Pattern random_leaf(base::Random* random, const std::shared_ptr<const BlockLayout>& layout) {
  const auto in = [&](std::int64_t low, std::int64_t high) { return between(random, low, high); };
  switch (random->below(layout == nullptr ? 18 : 20)) {
    case 0:
      return random->below(3) == 0 ? dense() : causal();
    case 1:
    case 2:
      return causal();
    case 3:
      return window(in(-1, 40), in(-1, 40));
    case 4: {
      const std::int64_t a = in(-1, 40);
      return newer_leaf(a, in(-1, 40));
    }
    case 5:
      return sink(in(0, 40));
    case 6:
      return global(in(0, 40));
    case 7:
      return global(std::span<const std::int64_t>(random_list(random, 6)));
    case 8:
      return documents(std::span<const std::int64_t>(random_list(random, 6)));
    case 9:
      return dilated(in(1, 12));
    case 10:
      return block_dilated(in(1, 5), in(1, 9));
    case 11:
      return strided(in(1, 6), in(0, 4), in(1, 9));
    case 12:
      return annulus::random(in(0, 5), in(0, 9), in(1, 30));
    case 13:
      return segment(in(1, 40), in(1, 8));
    case 14:
      return axial(in(1, 12), in(1, 12));
    case 15: {
      const std::int64_t n = 2 * in(0, 3) + 1;
      return natten(in(n, 14), in(n, 14), n);
    }
    case 16:
      return vertical_slash(random_list(random, 5), random_list(random, 8));
    case 17:
      return hierarchical(random_levels(random));
    default:
      return blocks(layout, OutsideLayout::kHidden);
  }
}

inline Pattern random_pattern(base::Random* random, int depth,
                              const std::shared_ptr<const BlockLayout>& layout) {
  if (depth > 1 && random->below(4) != 0) {
    const Pattern a = random_pattern(random, depth - 1, layout);
    if (random->below(4) == 0) return ~a;
    const Pattern b = random_pattern(random, depth - 1, layout);
    if (random->below(6) == 0) return heads({a, b, random_leaf(random, layout)});
    return random->below(2) == 0 ? (a & b) : (a | b);
  }
  return random_leaf(random, layout);
}

// The code of the error that an action throws. Stores the message if `message` is not null.
inline ErrorCode code_of(const std::function<void()>& action, std::string* message = nullptr) {
  try {
    action();
  } catch (const Error& error) {
    if (message != nullptr) *message = error.what();
    return error.code();
  }
  return ErrorCode{0};
}

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_PATTERN_RANDOM_PATTERN_H_
