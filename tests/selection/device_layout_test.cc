// Layouts that kernels build, compared with the host's: the same arrays for random expressions.

#include "annulus/layout.h"

#include <doctest/doctest.h>

#include "annulus/types.h"
#include "attention/on_device.h"
#include "support/options.h"

namespace {

using namespace annulus;
using test::device;

std::int64_t pick(base::Random& random, std::int64_t low, std::int64_t high) {
  return low + random.below(static_cast<std::uint32_t>(high - low + 1));
}

bool on_device(const Pattern& pattern) {
  return pattern.branches().size() == 1 &&
         pattern.to_string().find("blocks(\"") == std::string::npos;
}

void check_same(const Pattern& pattern, const LayoutSizes& sizes, std::int64_t layer = 0) {
  CAPTURE(pattern.to_string());
  CAPTURE(sizes.seq_q);
  CAPTURE(sizes.seq_k);
  CAPTURE(sizes.block_rows);
  CAPTURE(sizes.block_columns);
  CAPTURE(sizes.heads);
  LayoutOptions options;
  options.layer = layer;
  options.threads = 1;
  const BlockLayout expected = make_layout(pattern, sizes, options);
  const BlockLayout built = make_layout(device(), pattern, sizes, options);
  CHECK(built.indptr == expected.indptr);
  CHECK(built.indices == expected.indices);
  CHECK(built.partial == expected.partial);
  CHECK(built == expected);
}

TEST_CASE("random expressions have the host's layout, bit for bit") {
  const int count = test::options().problems > 0 ? test::options().problems : 24;
  for (int index = 0; index < count; ++index) {
    base::Random random(static_cast<std::uint64_t>(index) + 500 * test::options().seed);
    LayoutSizes sizes;
    const std::int64_t blocks[] = {1, 7, 8, 16, 24, 32, 64, 100, 128};
    sizes.block_rows = blocks[random.below(std::size(blocks))];
    sizes.block_columns = blocks[random.below(std::size(blocks))];
    const std::int64_t most = 40 * std::min<std::int64_t>(8, sizes.block_rows);
    sizes.seq_q = pick(random, 0, most);
    sizes.seq_k = random.below(2) == 0 ? sizes.seq_q : pick(random, 0, most);
    sizes.heads = pick(random, 1, 4);
    Pattern pattern = dense();
    do {
      pattern = test::random_pattern(random, sizes.seq_q, sizes.seq_k, sizes.heads, 3);
    } while (!on_device(pattern));
    CAPTURE(index);
    check_same(pattern, sizes, random.below(3));
  }
}

TEST_CASE("leaves that ranges decide, and those that pairs decide") {
  const LayoutSizes sizes = {32, 48, 500, 700, 3};
  for (const char* text :
       {"dense", "~dense", "causal", "window(40, 3)", "window(-1, 5)", "window(5, -1)", "sink(50)",
        "global(33)", "global([3, 90, 91])", "dilated(7)", "block_dilated(3, 48)",
        "block_dilated(3, 20)", "strided(3, 1, 96)", "random(3, 5, 96)", "random(3, 5, 40)",
        "documents([0, 40, 100, 333])", "segment(64, 2)", "axial(20, 30)", "natten(20, 30, 5)",
        "vertical_slash([3, 90], [0, 17, 200])", "hierarchical([(1, 2, 16), (4, -1, 32)])",
        "heads(causal, dense, window(3, 3))",
        // The parts differ only in their numbers.
        "heads(window(1, 1), window(2, 9), window(3, 0), window(4, 0), "
        "window(5, 1), window(60, 0), window(7, 0), window(8, 0), window(9, 2))",
        "keys(0, 9) | keys(9, 40) | keys(50, 60) | keys(61, 62) | keys(70, 300) "
        "| keys(301, 302) | keys(310, 311) | keys(320, 400) | keys(500, 501)",
        "causal & (window(100, 0) | global(16)) & ~sink(3)"}) {
    check_same(Pattern::parse(text), sizes);
  }
  check_same(causal(), {16, 16, 0, 100, 2});
  check_same(causal(), {16, 16, 100, 0, 2});
}

TEST_CASE("what a device has no layout for is refused") {
  const LayoutSizes sizes = {32, 32, 100, 100, 1};
  const auto refused = [](const Pattern& pattern, const LayoutSizes& of, ErrorCode code) {
    try {
      make_layout(device(), pattern, of);
      FAIL_CHECK("nothing was thrown");
    } catch (const Error& error) {
      CHECK_MESSAGE(error.code() == code, error.what());
    }
  };
  refused(sum({causal(), sink(4)}), sizes, ErrorCode::kUnsupported);
  // It is unclear which batch is meant.
  refused(batches({causal(), sink(4)}), sizes, ErrorCode::kInvalidArgument);
  refused(blocks(make_layout(causal(), sizes)), sizes, ErrorCode::kUnsupported);
  refused(causal(), {0, 32, 100, 100, 1}, ErrorCode::kInvalidArgument);
  refused(causal(), {32, 32, std::int64_t{1} << 31, 100, 1}, ErrorCode::kUnsupported);
  refused(causal(), {32, 32, 100, 100, 100000}, ErrorCode::kUnsupported);
}

}  // namespace
