#include <doctest/doctest.h>

#include "layout/sample_layout.h"
#include "pattern/classify.h"

namespace annulus {
namespace {

using base::Random;
using test::between;
using test::code_of;
using test::state_at;

TEST_CASE("statistics of a causal layout are those of a triangle") {
  const BlockLayout layout =
      pattern::make_layout(causal(), pattern::Extent::whole(128, 128), 16, 16);
  const LayoutStatistics found = statistics(layout);
  CHECK(found.rows == 8);
  CHECK(found.columns == 8);
  CHECK(found.kept == 36);
  CHECK(found.partial == 8);
  CHECK(found.block_density.value == 36.0 / 64);
  CHECK(found.shortest_row == 1);
  CHECK(found.longest_row == 8);
  CHECK(found.shortest_column == 1);
  CHECK(found.longest_column == 8);
  CHECK(found.empty_rows == 0);
  CHECK(found.row_imbalance == doctest::Approx(8 / 4.5));
  CHECK(found.column_imbalance == doctest::Approx(8 / 4.5));
  // Block (i, j) is 16 (i - j) - 15 tokens below the diagonal: 7 blocks at 1, 6 at 17, and so on.
  CHECK(found.mean_distance ==
        doctest::Approx((7 * 1 + 6 * 17 + 5 * 33 + 4 * 49 + 3 * 65 + 2 * 81 + 97) / 36.0));
  CHECK(found.bytes == 9 * 8 + 36 * 4 + 36);
}

TEST_CASE("statistics agree with counting") {
  Random random(31);
  for (int i = 0; i < 100; ++i) {
    const BlockLayout layout =
        test::random_blocks(&random, test::random_sizes(&random), between(&random, 1, 3));
    const LayoutStatistics found = statistics(layout);
    std::int64_t kept = 0, partial = 0, empty_rows = 0, longest_column = 0, empty_columns = 0;
    for (std::int64_t head = 0; head < layout.heads; ++head) {
      for (std::int64_t row = 0; row < layout.rows(); ++row) {
        std::int64_t in_row = 0;
        for (std::int64_t column = 0; column < layout.columns(); ++column) {
          const int state =
              state_at(layout, head, row * layout.block_rows, column * layout.block_columns);
          in_row += state != 0;
          partial += state == 2;
        }
        kept += in_row;
        empty_rows += in_row == 0;
      }
      for (std::int64_t column = 0; column < layout.columns(); ++column) {
        std::int64_t in_column = 0;
        for (std::int64_t row = 0; row < layout.rows(); ++row) {
          in_column +=
              state_at(layout, head, row * layout.block_rows, column * layout.block_columns) != 0;
        }
        longest_column = std::max(longest_column, in_column);
        empty_columns += in_column == 0;
      }
    }
    CHECK(found.kept == kept);
    CHECK(found.partial == partial);
    CHECK(found.empty_rows == empty_rows);
    CHECK(found.empty_columns == empty_columns);
    CHECK(found.longest_column == longest_column);
    CHECK(found.block_density.value == doctest::Approx(block_density(layout).value));
  }
}

TEST_CASE("blocks claim more than pairs") {
  const PatternStatistics found = statistics(causal() & window(3, 0), {16, 16, 64, 64});
  CHECK(found.pairs.value == doctest::Approx((64 * 4 - 6) / 4096.0));
  CHECK(found.layout.kept == 7);
  CHECK(found.layout.block_density.value == 7.0 / 16);
  CHECK(found.overhead == doctest::Approx(7.0 / 16 / (250 / 4096.0)));
  CHECK(statistics(~dense(), {16, 16, 64, 64}).overhead == 0);
  CHECK(statistics(dense(), {16, 16, 0, 0}).pairs.value == 0);
}

TEST_CASE("information travels as far as windows add up") {
  // In each layer a block sees itself and the block before it.
  const BlockLayout layout =
      pattern::make_layout(causal() & window(16, 0), pattern::Extent::whole(160, 160), 16, 16);
  const std::vector<double> shares = reachability(layout, 12);
  REQUIRE(shares.size() == 12);
  for (int n = 1; n <= 12; ++n) {
    std::int64_t pairs = 0;
    for (int row = 0; row < 10; ++row) pairs += std::min(row, n) + 1;
    CHECK(shares[static_cast<std::size_t>(n - 1)] == doctest::Approx(pairs / 100.0));
  }
}

TEST_CASE("reachability agrees with a tile_order over blocks") {
  Random random(32);
  for (int i = 0; i < 60; ++i) {
    const BlockLayout layout =
        test::random_blocks(&random, test::random_sizes(&random, 60), between(&random, 1, 2));
    const std::int64_t rows = layout.rows(), columns = layout.columns();
    const std::int64_t shift = layout.seq_k - layout.seq_q;
    // meets[r][c]: some row of block r has the same position as a key of column block c.
    const auto meets = [&](std::int64_t row, std::int64_t column) {
      for (std::int64_t q = row * layout.block_rows;
           q < std::min((row + 1) * layout.block_rows, layout.seq_q); ++q) {
        const std::int64_t key = q + shift;
        if (key >= 0 && key < layout.seq_k && key / layout.block_columns == column) return true;
      }
      return false;
    };
    const auto kept = [&](std::int64_t row, std::int64_t column) {
      for (std::int64_t head = 0; head < layout.heads; ++head) {
        if (state_at(layout, head, row * layout.block_rows, column * layout.block_columns) != 0) {
          return true;
        }
      }
      return false;
    };
    std::vector<std::vector<bool>> reached(static_cast<std::size_t>(rows),
                                           std::vector<bool>(static_cast<std::size_t>(columns)));
    const auto at = [](auto& matrix, std::int64_t row, std::int64_t column) {
      return matrix[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)];
    };
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        at(reached, row, column) = kept(row, column) || meets(row, column);
      }
    }
    const std::vector<double> shares = reachability(layout, 4);
    for (int layer = 0; layer < 4; ++layer) {
      std::int64_t count = 0;
      for (const auto& line : reached) count += std::count(line.begin(), line.end(), true);
      CHECK(shares[static_cast<std::size_t>(layer)] ==
            doctest::Approx(rows * columns > 0
                                ? static_cast<double>(count) / static_cast<double>(rows * columns)
                                : 0));
      auto next = reached;
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t middle = 0; middle < columns; ++middle) {
          if (!kept(row, middle)) continue;
          for (std::int64_t source = 0; source < rows; ++source) {
            if (!meets(source, middle)) continue;
            for (std::int64_t column = 0; column < columns; ++column) {
              if (at(reached, source, column)) at(next, row, column) = true;
            }
          }
        }
      }
      reached = next;
    }
  }
}

TEST_CASE("reachability refuses what it cannot hold") {
  BlockLayout layout{.block_rows = 1,
                     .block_columns = 1,
                     .seq_q = 1,
                     .seq_k = INT32_MAX,
                     .heads = 1,
                     .indptr = {0, 0},
                     .indices = {},
                     .partial = {}};
  layout.seq_q = 20;
  layout.indptr.resize(21);
  CHECK(code_of([&] { reachability(layout, 2); }) == ErrorCode::kUnsupported);
  layout.seq_k = 3;
  CHECK(code_of([&] { reachability(layout, 0); }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([&] { reachability(layout, 1025); }) == ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace annulus
