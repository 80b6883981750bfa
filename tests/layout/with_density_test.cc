#include <doctest/doctest.h>

#include <cmath>

#include "layout/sample_layout.h"
#include "pattern/classify.h"

namespace annulus {
namespace {

using base::Random;
using test::between;
using test::code_of;
using test::state_at;

bool firm(const BlockLayout& layout, std::int64_t row, std::int64_t column) {
  if (column == 0) return true;
  for (std::int64_t q = row * layout.block_rows;
       q < std::min((row + 1) * layout.block_rows, layout.seq_q); ++q) {
    const std::int64_t position = q + layout.seq_k - layout.seq_q;
    if (position >= column * layout.block_columns &&
        position < std::min((column + 1) * layout.block_columns, layout.seq_k)) {
      return true;
    }
  }
  return false;
}

TEST_CASE("a wanted density is met to the block, and diagonal and sink stay") {
  Random random(21);
  int met = 0;
  for (int i = 0; i < 300; ++i) {
    const BlockLayout from =
        test::random_blocks(&random, test::random_sizes(&random), between(&random, 1, 2));
    const double d = random.uniform();
    std::string message;
    BlockLayout to;
    const ErrorCode code = code_of([&] { to = with_density(from, Density{d}); }, &message);
    const double all = static_cast<double>(from.rows() * from.columns());
    const std::int64_t wanted = std::llround(d * all);
    if (code == ErrorCode{0}) {
      ++met;
      to.validate();
      CHECK(static_cast<std::int64_t>(to.indices.size()) == wanted * from.heads);
    } else {
      CHECK(code == ErrorCode::kInvalidArgument);
      CHECK_MESSAGE(message.find("which are always kept") != std::string::npos, message);
      continue;
    }
    for (std::int64_t head = 0; head < from.heads; ++head) {
      for (std::int64_t row = 0; row < from.rows(); ++row) {
        for (const std::int32_t column : from.row(head, row)) {
          if (!firm(from, row, column)) continue;
          CHECK(state_at(to, head, row * to.block_rows, column * to.block_columns) ==
                state_at(from, head, row * to.block_rows, column * to.block_columns));
        }
      }
    }
    // The call either only adds or only removes blocks, and is deterministic.
    const LayoutDifference change = difference(from, to);
    if (from.heads == 1) CHECK((change.only_first == 0 || change.only_second == 0));
    CHECK(with_density(from, Density{d}) == to);
  }
  CHECK(met > 150);
}

TEST_CASE("in a row the nearest come and the farthest go, ties by index") {
  BlockLayout layout{.block_rows = 8,
                     .block_columns = 8,
                     .seq_q = 8,
                     .seq_k = 64,
                     .heads = 1,
                     .indptr = {0, 0},
                     .indices = {},
                     .partial = {}};
  const auto row = [&](int count) { return with_density(layout, Density{count / 8.0}).indices; };
  using Columns = std::vector<std::int32_t>;
  CHECK(row(1) == Columns{7});  // one row of blocks, at the end of the keys
  CHECK(row(3) == Columns{5, 6, 7});
  CHECK(row(8).size() == 8);
  layout.indptr = {0, 8};
  layout.indices = {0, 1, 2, 3, 4, 5, 6, 7};
  CHECK(row(2) == Columns{0, 7});
  CHECK(row(4) == Columns{0, 5, 6, 7});
  // In the middle of the keys both sides are equally near, and the lower side comes first.
  BlockLayout middle{.block_rows = 8,
                     .block_columns = 8,
                     .seq_q = 40,
                     .seq_k = 40,
                     .heads = 1,
                     .indptr = {0, 0, 0, 0, 0, 0},
                     .indices = {},
                     .partial = {}};
  const BlockLayout two = with_density(middle, Density{0.4});  // two in each row
  const auto third = two.row(0, 2);
  CHECK(Columns(third.begin(), third.end()) == Columns{1, 2});
}

TEST_CASE("rows lose in proportion to what they have") {
  const BlockLayout causal_blocks =
      pattern::make_layout(causal(), pattern::Extent::whole(1024, 1024), 16, 16);
  const BlockLayout half = with_density(causal_blocks, Density{0.25});
  CHECK(half.indices.size() == 1024);
  for (std::int64_t row = 2; row < 64; ++row) {
    // There are 2,080 blocks. 127 of them are on the diagonal or in column 0.
    const double share = 2 + static_cast<double>(row - 1) * (1024.0 - 127) / (2080 - 127);
    CHECK(std::abs(static_cast<double>(half.row(0, row).size()) - share) <= 1);
  }
}

TEST_CASE("what comes can be held within another layout") {
  const auto extent = pattern::Extent::whole(256, 256);
  const BlockLayout within = pattern::make_layout(causal(), extent, 16, 16);
  const BlockLayout narrow = pattern::make_layout(causal() & window(8, 0), extent, 16, 16);
  const BlockLayout wider = with_density(narrow, Density{0.4}, within);
  CHECK(wider.indices.size() == 102);
  CHECK(subtract(wider, within).indices.empty());
  CHECK(subtract(narrow, wider).indices.empty());
  std::string message;
  CHECK(code_of([&] { with_density(narrow, Density{0.6}, within); }, &message) ==
        ErrorCode::kInvalidArgument);
  CHECK_MESSAGE(message.find("room for 105 more; 154 are wanted") != std::string::npos, message);
  // The single layout of all heads becomes a separate layout for each head.
  Random random(22);
  const BlockLayout many = unite(within, test::random_blocks(&random, within, 3));
  const BlockLayout three = with_density(narrow, Density{0.3}, many);
  CHECK(three.heads == 3);
  CHECK(three.indices.size() == 3 * 77);
  CHECK(subtract(three, many).indices.empty());
}

TEST_CASE("densities outside [0, 1] are refused") {
  const BlockLayout layout = pattern::make_layout(causal(), pattern::Extent::whole(64, 64), 8, 8);
  for (const double d : {-0.001, 1.001, std::nan(""), HUGE_VAL}) {
    CHECK(code_of([&] { with_density(layout, Density{d}); }) == ErrorCode::kInvalidArgument);
  }
  CHECK(with_density(layout, Density{1}).indices.size() == 64);
  CHECK(code_of([&] { with_density(layout, Density{0}); }) == ErrorCode::kInvalidArgument);
  const BlockLayout none = pattern::make_layout(~dense(), pattern::Extent::whole(64, 64), 8, 8);
  CHECK(with_density(none, Density{0}) == none);
  BlockLayout empty;
  empty.block_rows = empty.block_columns = 8;
  empty.indptr = {0};
  CHECK(with_density(empty, Density{0.5}) == empty);
}

}  // namespace
}  // namespace annulus
