#include "attention/oracle/taint.h"

#include <doctest/doctest.h>

#include "support/random_problem.h"

namespace {

using namespace annulus;

TEST_CASE("what is not finite reaches its own row, or the tile rows that read its tile") {
  Problem problem;
  problem.batch = 2;
  problem.heads = 4;
  problem.kv_heads = 2;
  problem.seq_q = problem.seq_k = 200;
  problem.dim_qk = problem.dim_v = 32;
  problem.dtype = Dtype::kFloat16;
  problem.pattern = causal();
  const test::Case clean = test::make_case(problem, 1, test::Order::kPadded);
  const attention::TileList tiles = attention::make_tile_list(problem, 64, 32, nullptr);
  CHECK(attention::rows_reached(problem, clean.inputs(), tiles).empty());

  test::Case c = clean;
  c.q.bits[static_cast<std::size_t>(c.q.offset(1, 17, 2) + 3)] = 0x7c00;  // infinity
  std::vector<std::uint8_t> reached = attention::rows_reached(problem, c.inputs(), tiles);
  for (std::size_t row = 0; row < reached.size(); ++row) {
    CHECK(reached[row] == (row == (1 * 4 + 2) * 200 + 17));
  }

  c = clean;
  c.v.bits[static_cast<std::size_t>(c.v.offset(0, 70, 1))] = 0x7e00;  // NaN; column tile 2
  reached = attention::rows_reached(problem, c.inputs(), tiles);
  for (std::size_t row = 0; row < reached.size(); ++row) {
    const std::size_t bh = row / 200;
    const bool expected = (bh == 2 || bh == 3) && row % 200 >= 64;
    if ((reached[row] != 0) != expected) FAIL("row " << row);
  }
}

}  // namespace
