#include <doctest/doctest.h>

#include "annulus/layout.h"
#include "layout/sample_layout.h"
#include "pattern/classify.h"

namespace annulus {
namespace {

using base::Random;
using test::between;
using test::code_of;

TEST_CASE("threads make the layout of one, bit for bit") {
  Random random(81);
  const auto shared =
      std::make_shared<const BlockLayout>(test::random_layout(&random, 150, 150, 3));
  for (int i = 0; i < 40; ++i) {
    const Pattern pattern = test::random_pattern(&random, 3, shared);
    const std::int64_t heads = pattern.heads() == 1 ? between(&random, 1, 5) : 3;
    const LayoutSizes sizes = {between(&random, 1, 2), between(&random, 1, 9),
                               between(&random, 0, 900), between(&random, 0, 200), heads};
    const BlockLayout one = make_layout(pattern, sizes, {0, 1});
    one.validate();
    CHECK(make_layout(pattern, sizes, {0, 2}) == one);
    CHECK(make_layout(pattern, sizes, {0, 5}) == one);
    CHECK(make_layout(pattern, sizes) == one);
  }
  const LayoutSizes large = {16, 16, 1 << 17, 1 << 17};
  const Pattern window_and_global = causal() & (window(4095, 0) | global(256));
  CHECK(make_layout(window_and_global, large, {0, 4}) ==
        make_layout(window_and_global, large, {0, 1}));
}

TEST_CASE("a layout of many heads stores what differs, and each head is right") {
  Random random(82);
  for (int i = 0; i < 60; ++i) {
    const Pattern pattern = test::random_pattern(&random, 3, nullptr);
    const LayoutSizes sizes = {between(&random, 1, 12), between(&random, 1, 12),
                               between(&random, 0, 50), between(&random, 0, 50),
                               between(&random, 1, 7)};
    const LayoutOptions options = {between(&random, 0, 3), 1};
    const BlockLayout layout = make_layout(pattern, sizes, options);
    layout.validate();
    CHECK((layout.heads == 1 || layout.query_heads() == sizes.heads));
    CHECK(layout.heads == pattern.distinct_heads(sizes.heads));
    std::int64_t wrong = 0;
    for (std::int64_t head = 0; head < sizes.heads; ++head) {
      const std::int64_t stored = layout.distinct_head(layout.heads == 1 ? 0 : head);
      for (std::int64_t row = 0; row < sizes.seq_q; ++row) {
        for (std::int64_t key = 0; key < sizes.seq_k; ++key) {
          const int state = test::state_at(layout, stored, row, key);
          const bool visible = pattern.visible(head, row + sizes.seq_k - sizes.seq_q, key,
                                               {sizes.seq_k, options.layer});
          wrong += (visible && state == 0) || (!visible && state == 1);
        }
      }
    }
    CHECK(wrong == 0);
  }
  const BlockLayout segments = make_layout(segment(64, 4), {16, 16, 256, 256, 32});
  CHECK(segments.heads == 4);
  CHECK(segments.query_heads() == 32);
  CHECK(share_heads(part_heads(segments)).heads <= 4);
}

TEST_CASE("a layout is made from one that covers its lengths") {
  const BlockLayout layout = make_layout(causal(), {16, 16, 100, 100});
  CHECK(make_layout(blocks(layout), {8, 8, 40, 90}).seq_q == 40);
  CHECK(statistics(blocks(layout, OutsideLayout::kHidden), {8, 8, 101, 101}).pairs.value > 0);
  const auto refused = [](const std::function<void()>& call) {
    std::string message;
    CHECK(code_of(call, &message) == ErrorCode::kInvalidArgument);
    CHECK_MESSAGE(message.find("layout of Sq 100 x Sk 100") != std::string::npos, message);
  };
  refused([&] { make_layout(blocks(layout), {8, 8, 101, 101}); });
  refused([&] { statistics(causal() & blocks(layout), {8, 8, 101, 101}); });
  // The grid of blocks is the same for 104 x 104, but the lengths differ.
  LayoutCache cache;
  CHECK(cache.get(LayoutQuery(blocks(layout), 8, 8), 100, 100)->layout.rows() == 13);
  refused([&] { cache.get(LayoutQuery(blocks(layout), 8, 8), 101, 101); });
}

TEST_CASE("a layout that cannot be made is an error from every number of threads") {
  const std::int64_t many = std::int64_t{1} << 20;
  for (const int threads : {1, 3}) {
    CHECK(code_of([&] {
            make_layout(dense(), {1, 1, many, many}, {0, threads});
          }) == ErrorCode::kLimit);
    CHECK(code_of([&] {
            make_layout(dense(), {1, 1, many, many}, {0, threads, {.steps = 0}});
          }) == ErrorCode::kOutOfMemory);
    CHECK(code_of([&] {
            make_layout(causal(), {1, 1, 8, many << 20}, {0, threads});
          }) == ErrorCode::kInvalidArgument);
  }
  CHECK(code_of([] {
          make_layout(causal(), {8, 8, 64, 64}, {0, -1});
        }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([] { make_layout(causal(), {8, 8, 64, 64, 0}); }) == ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace annulus
