#include <doctest/doctest.h>

#include <algorithm>

#include "annulus/layout.h"
#include "layout/sample_layout.h"

namespace annulus {
namespace {

using base::Random;
using test::between;
using test::code_of;
using Ints = std::vector<std::int32_t>;

// Distinct entries and padding in random order.
Ints random_lists(Random* random, std::int64_t heads, std::int64_t width) {
  Ints lists;
  for (std::int64_t head = 0; head < heads; ++head) {
    Ints all(60);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int32_t>(i);
    for (std::int64_t i = 0; i < width; ++i) {
      std::swap(all[static_cast<std::size_t>(i)],
                all[static_cast<std::size_t>(between(random, i, 59))]);
      lists.push_back(random->below(4) == 0 ? -1 : all[static_cast<std::size_t>(i)]);
    }
  }
  return lists;
}

bool holds(const Ints& lists, std::int64_t width, std::int64_t head, std::int64_t entry) {
  const auto begin = lists.begin() + head * width;
  return std::find(begin, begin + width, entry) != begin + width;
}

TEST_CASE("vertical and slash lists are a pattern, and come back") {
  Random random(91);
  for (int i = 0; i < 100; ++i) {
    const std::int64_t heads = between(&random, 1, 4);
    const std::int64_t columns = between(&random, 0, 6), diagonals = between(&random, 0, 6);
    const Ints verticals = random_lists(&random, heads, columns);
    const Ints slashes = random_lists(&random, heads, diagonals);
    const Pattern pattern = from_vertical_slash(heads, verticals, slashes);
    std::int64_t wrong = 0;
    for (std::int64_t head = 0; head < heads; ++head) {
      for (std::int64_t q = 0; q < 60; ++q) {
        for (std::int64_t k = 0; k < 60; ++k) {
          const bool expected = holds(verticals, columns, head, k) ||
                                (q >= k && holds(slashes, diagonals, head, q - k));
          wrong += pattern.visible(head, q, k) != expected;
        }
      }
    }
    CHECK(wrong == 0);
    const VerticalSlashArrays arrays = to_vertical_slash(pattern, heads);
    CHECK(from_vertical_slash(heads, arrays.verticals, arrays.slashes) == pattern);
  }
  const VerticalSlashArrays arrays = to_vertical_slash(
      Pattern::parse("heads(vertical_slash([1,5],[0]),vertical_slash([],[2]))"), 4);
  CHECK(arrays.verticals == Ints{1, 5, -1, -1, 1, 5, -1, -1});
  CHECK(arrays.slashes == Ints{0, 2, 0, 2});
}

TEST_CASE("lists that say nothing clear are refused") {
  std::string message;
  const auto refused = [&](const std::function<void()>& action, ErrorCode code, const char* part) {
    CHECK(code_of(action, &message) == code);
    CHECK_MESSAGE(message.find(part) != std::string::npos, message);
  };
  const ErrorCode invalid = ErrorCode::kInvalidArgument;
  refused([] { from_vertical_slash(2, Ints{1, 2, 3}, Ints{}); }, invalid, "verticals has 3");
  refused([] { from_vertical_slash(1, Ints{1, -2}, Ints{}); }, invalid, "verticals[1] is -2");
  refused([] { from_vertical_slash(2, Ints{}, Ints{4, 0, 7, 7}); }, invalid, "head 1 has 7 twice");
  refused([] { from_vertical_slash(0, Ints{}, Ints{}); }, invalid, "0 heads");
  refused([] { to_vertical_slash(causal(), 1); }, ErrorCode::kUnsupported, "not vertical_slash()");
  refused([] { to_vertical_slash(vertical_slash({1}, {-3}), 1); }, ErrorCode::kUnsupported, "-3");
}

}  // namespace
}  // namespace annulus
