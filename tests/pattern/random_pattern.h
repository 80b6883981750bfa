#ifndef ANNULUS_TESTS_PATTERN_RANDOM_PATTERN_H_
#define ANNULUS_TESTS_PATTERN_RANDOM_PATTERN_H_

// Random layouts and random trees over positions of about -100 to 200, for property tests.

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "annulus/error.h"
#include "annulus/pattern.h"
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

// `layout` null: no blocks().
inline Pattern random_pattern(base::Random* random, int depth,
                              const std::shared_ptr<const BlockLayout>& layout) {
  if (depth > 1 && random->below(4) != 0) {
    const Pattern a = random_pattern(random, depth - 1, layout);
    if (random->below(4) == 0) return ~a;
    const Pattern b = random_pattern(random, depth - 1, layout);
    return random->below(2) == 0 ? (a & b) : (a | b);
  }
  switch (random->below(layout == nullptr ? 7 : 8)) {
    case 0:
      return random->below(3) == 0 ? dense() : causal();
    case 1:
      return causal();
    case 2:
      return window(between(random, -1, 40), between(random, -1, 40));
    case 3:
      return sink(between(random, 0, 40));
    case 4:
      return global(between(random, 0, 40));
    case 5:
      return global(std::span<const std::int64_t>(random_list(random, 6)));
    case 6:
      return documents(std::span<const std::int64_t>(random_list(random, 6)));
    default:
      return blocks(layout);
  }
}

// What an action throws: its code, and its message where `message` is given.
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
