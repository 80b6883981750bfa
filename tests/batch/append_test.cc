// Appending new keys and values to pages, and rotating Q and K, compared with the expected memory.

#include "annulus/batch.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "base/math.h"
#include "base/random.h"
#include "batch/append_case.h"
#include "support/device.h"

namespace {

using namespace annulus;
using test::AppendCase;
using test::AppendedRow;
using test::AppendLayout;
using test::KeyRow;

const Device& device() {
  static const Device opened = Device::open(test::device_name());
  return opened;
}

AppendProblem problem_of(std::int64_t rows, RotaryOrder order) {
  AppendProblem problem;
  problem.heads = 3;
  problem.kv_heads = 2;
  problem.dim_qk = 64;
  problem.dim_v = 32;
  problem.page_rows = 16;
  problem.rotary.order = order;
  problem.most.rows = rows;
  return problem;
}

// Rows at random, distinct slots of a pool. Every fifth row has slot -1.
struct Slots {
  std::vector<std::int64_t> slots;
  std::vector<AppendedRow> rows;
};
Slots draw_slots(const AppendProblem& problem, std::int64_t count, std::int64_t places,
                 const std::vector<std::int64_t>& positions) {
  const std::int64_t rows_of_page = std::max<std::int64_t>(problem.page_rows, 1);
  std::vector<std::int64_t> all(static_cast<std::size_t>(places * rows_of_page));
  std::iota(all.begin(), all.end(), 0);
  base::Random random(static_cast<std::uint64_t>(problem.dim_qk + problem.page_rows));
  Slots drawn;
  for (std::int64_t row = 0; row < count; ++row) {
    const auto at = static_cast<std::size_t>(row);
    std::swap(all[at], all[at + random.below(static_cast<std::uint32_t>(all.size() - at))]);
    const bool none = row % 5 == 3;
    drawn.slots.push_back(none ? -1 : all[at]);
    AppendedRow made = {row, positions[at % positions.size()], true, std::nullopt};
    if (!none) made.k = KeyRow{all[at] / rows_of_page, all[at] % rows_of_page};
    drawn.rows.push_back(made);
  }
  return drawn;
}

// Appends by slots. The step has fewer rows than the bound.
void check_slots(const AppendProblem& problem, const AppendLayout& layout, bool wide,
                 const std::vector<std::int64_t>& positions, const std::string& what) {
  CAPTURE(what);
  const std::int64_t count = problem.most.rows - 2;
  const std::int64_t places =
      base::ceil_div(3 * count, std::max<std::int64_t>(problem.page_rows, 1));
  Slots drawn = draw_slots(problem, count, places, positions);
  AppendCase made(device(), problem, drawn.rows, places, layout);
  AppendOperands operands = made.operands();
  std::vector<std::int64_t> row_positions;
  for (const AppendedRow& row : drawn.rows) row_positions.push_back(row.position);
  const auto narrow = [](const std::vector<std::int64_t>& values) {
    return std::vector<std::int32_t>(values.begin(), values.end());
  };
  if (wide) {
    operands.slots = made.put(drawn.slots);
  } else {
    operands.slots_32 = made.put(narrow(drawn.slots));
  }
  if (problem.rotary.order != RotaryOrder::kNone) {
    if (wide) {
      operands.positions_32 = made.put(narrow(row_positions));
    } else {
      operands.positions = made.put(row_positions);
    }
  }
  if (problem.rotary.tables) {
    made.give_tables(*std::max_element(positions.begin(), positions.end()) + 1, &operands);
  }
  operands.rows = made.put(std::vector<std::int32_t>{static_cast<std::int32_t>(count)});
  operands.status = made.put(std::vector<std::uint32_t>{0});
  const AppendPlan plan = plan_append(device(), problem);
  plan.clear_status(nullptr, operands.status);
  plan.run(nullptr, operands);
  CHECK(made.first_wrong() == "");
  CHECK(plan.status(operands.status).rule == AppendRule::kNone);
}

constexpr RotaryOrder kOrders[] = {RotaryOrder::kNone, RotaryOrder::kInterleaved,
                                   RotaryOrder::kHalves};

TEST_CASE("rows go to their slots, in pages of any size") {
  int turn = 0;
  for (const RotaryOrder order : kOrders) {
    for (const std::int64_t page_rows : {0, 1, 3, 16, 64}) {
      AppendProblem problem = problem_of(12, order);
      problem.page_rows = page_rows;
      problem.dtype = turn % 2 == 0 ? Dtype::kBfloat16 : Dtype::kFloat16;
      check_slots(problem,
                  {.heads_first = page_rows > 0 && turn % 3 == 1,
                   .together = page_rows > 0 && turn % 3 == 2,
                   .in_place = turn % 2 == 1},
                  turn % 2 == 0, {0, 1, 5, 4095},
                  "order " + std::to_string(static_cast<int>(order)) + ", pages of " +
                      std::to_string(page_rows));
      ++turn;
    }
  }
}

TEST_CASE("heads and head dims of any number, all of a head rotated or some of it") {
  struct Shape {
    std::int64_t heads, kv_heads, dim_qk, dim_v, dims;
  };
  for (const Shape& shape : {Shape{1, 1, 8, 8, 8},
                             {4, 1, 128, 128, 0},
                             {2, 2, 96, 64, 32},
                             {0, 3, 64, 64, 48},
                             {5, 5, 80, 80, 32},
                             {1, 1, 256, 64, 64},
                             {1, 1, 1024, 1024, 0}}) {
    for (const RotaryOrder order : {RotaryOrder::kInterleaved, RotaryOrder::kHalves}) {
      if (order == RotaryOrder::kHalves && shape.dim_qk == 8) continue;
      AppendProblem problem = problem_of(7, order);
      problem.heads = shape.heads;
      problem.kv_heads = shape.kv_heads;
      problem.dim_qk = shape.dim_qk;
      problem.dim_v = shape.dim_v;
      problem.rotary.dims = shape.dims;
      problem.dtype = shape.heads % 2 == 0 ? Dtype::kBfloat16 : Dtype::kFloat16;
      check_slots(problem, {.in_place = shape.heads == 4}, true, {3, 100, 70000},
                  std::to_string(shape.dim_qk) + " of which " + std::to_string(shape.dims));
    }
  }
}

// fp16 has the most precise mantissa, so it shows a wrong angle. At these positions an fp32 product
// of position and frequency has errors of up to 60 radians.
TEST_CASE("angles are right at every position") {
  std::vector<std::int64_t> positions = {1 << 30, -(1 << 30), -1, 999'999, 1'000'003, 16'777'217};
  base::Random random(5);
  while (positions.size() < 30) positions.push_back(random.below(1u << 30));
  for (const RotaryOrder order : {RotaryOrder::kInterleaved, RotaryOrder::kHalves}) {
    AppendProblem problem = problem_of(32, order);
    problem.dtype = Dtype::kFloat16;
    problem.dim_qk = 128;
    problem.page_rows = 0;
    check_slots(problem, {}, true, positions, "base 10000");
    problem.rotary.base = 500'000;
    problem.rotary.dims = 64;
    check_slots(problem, {.in_place = true}, false, positions, "base 500000");
    problem.rotary.dims = 32;
    problem.rotary.frequencies = {1,    0.5,  3.9,   -0.25, 1e-3,  1e-9, 0,      2,
                                  1e-1, 0.75, 0.125, 0.3,   0.007, -4,   3.1415, 1e-5};
    check_slots(problem, {}, false, positions, "frequencies");
  }
}

TEST_CASE("cosines and sines come from tables") {
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat16, Dtype::kBfloat16}) {
    for (const RotaryOrder order : {RotaryOrder::kInterleaved, RotaryOrder::kHalves}) {
      AppendProblem problem = problem_of(9, order);
      problem.rotary.dims = 32;
      problem.rotary.tables = dtype;
      check_slots(problem, {}, dtype == Dtype::kFloat16, {0, 7, 31, 12}, to_string(dtype));
    }
  }
}

// One request: the counts and the position that are passed to BatchPlan::prepare.
struct Request {
  std::int64_t queries, keys, position;
};
struct Placing {
  bool listed = false;      // begins and ids instead of a table [R, width]
  bool own_tables = false;  // V has separate pages and a separate table
  bool slabs = false;       // without pages: a slab for each request instead of k_begin
  bool positions = false;   // positions of rows are given, instead of positions of keys
};

void check_requests(AppendProblem problem, const std::vector<Request>& requests,
                    const Placing& placing, const std::string& what) {
  CAPTURE(what);
  constexpr std::int32_t kGarbage = -1234567;
  problem.place = AppendPlace::kRequests;
  problem.most.requests = std::ssize(requests) + 2;
  problem.most.keys_of_one = 1;
  const std::int64_t page_rows = problem.page_rows;
  const bool paged = page_rows > 0;
  std::int64_t rows = 1, pages = 1;
  for (const Request& request : requests) {
    rows += request.queries;
    problem.most.keys_of_one = std::max(problem.most.keys_of_one, request.keys);
    pages += base::ceil_div(held_keys(problem.interleave, request.keys),
                            std::max<std::int64_t>(page_rows, 1));
  }
  problem.most.rows = rows + 1;
  const std::int64_t slab = problem.most.keys_of_one;
  if (placing.slabs) pages = problem.most.requests * slab;
  const std::int64_t width = base::ceil_div(slab, std::max<std::int64_t>(page_rows, 1)) + 1;

  // Pages or rows are used from the last one down, and V's from the first one up.
  std::vector<std::int32_t> q_begin = {1}, k_length, k_position, positions(1, kGarbage);
  std::vector<std::int32_t> ids, v_ids, begin, k_begin;
  std::vector<AppendedRow> appended;
  std::int64_t used = 0;
  for (const Request& request : requests) {
    begin.push_back(static_cast<std::int32_t>(ids.size()));
    const auto first_page = static_cast<std::int64_t>(ids.size());
    const std::int64_t own = base::ceil_div(held_keys(problem.interleave, request.keys),
                                            std::max<std::int64_t>(page_rows, 1));
    const std::int64_t first =
        placing.slabs ? (std::ssize(k_length)) * slab : pages - 1 - used - (paged ? 0 : own - 1);
    k_begin.push_back(static_cast<std::int32_t>(own == 0 ? 0 : first));
    for (std::int64_t i = 0; paged && i < own; ++i) {
      ids.push_back(static_cast<std::int32_t>(pages - 1 - used - i));
      v_ids.push_back(static_cast<std::int32_t>(used + i));
    }
    for (std::int64_t i = 0; i < request.queries; ++i) {
      const std::int64_t key = request.keys - request.queries + i;
      AppendedRow row = {q_begin.back() + i, request.position + key, true, std::nullopt};
      if (placing.positions) row.position = 3 * row.row;
      positions.push_back(static_cast<std::int32_t>(row.position));
      // The number of the key among the keys of this rank. If the key is on another rank, the next
      // key has the same number here.
      const std::int64_t number = key < 0 ? 0 : held_keys(problem.interleave, key);
      if (key < 0 || held_keys(problem.interleave, key + 1) == number) {
        // Another rank has the key, so K and V are left out.
      } else if (paged) {
        const auto entry = static_cast<std::size_t>(first_page + number / page_rows);
        row.k = KeyRow{ids[entry], number % page_rows};
        if (placing.own_tables) row.v = KeyRow{v_ids[entry], number % page_rows};
      } else {
        row.k = KeyRow{first + number, 0};
      }
      appended.push_back(row);
    }
    used += own;
    if (paged) {
      ids.resize(static_cast<std::size_t>(first_page + (placing.listed ? own + 1 : width)),
                 kGarbage);
      v_ids.resize(ids.size(), kGarbage);
    }
    q_begin.push_back(static_cast<std::int32_t>(q_begin.back() + request.queries));
    k_length.push_back(static_cast<std::int32_t>(request.keys));
    k_position.push_back(static_cast<std::int32_t>(request.position));
  }
  begin.push_back(static_cast<std::int32_t>(ids.size()));
  const auto padded = [&](std::vector<std::int32_t> values) {
    values.resize(static_cast<std::size_t>(problem.most.requests + 1), kGarbage);
    return values;
  };

  AppendCase made(device(), problem, appended, pages, {});
  AppendOperands operands = made.operands();
  if (placing.slabs) {
    operands.k_strides.page = slab * operands.k_strides.row;
    operands.v_strides.page = slab * operands.v_strides.row;
  }
  BatchMetadata& step = operands.step;
  step.q_begin = made.put(padded(q_begin));
  step.k_length = made.put(padded(k_length));
  step.k_position = made.put(padded(k_position));
  step.requests = made.put(std::vector<std::int32_t>{static_cast<std::int32_t>(requests.size())});
  if (paged) {
    step.k_pages = {made.put(ids), placing.listed ? made.put(padded(begin)) : nullptr, width};
    if (placing.own_tables) {
      step.v_pages = {made.put(v_ids), placing.listed ? made.put(padded(begin)) : nullptr, width};
    }
  } else if (!placing.slabs) {
    step.k_begin = made.put(padded(k_begin));
  }
  if (placing.positions) operands.positions_32 = made.put(positions);
  const AppendPlan plan = plan_append(device(), problem);
  const bool too_few = std::any_of(requests.begin(), requests.end(),
                                   [](const Request& r) { return r.queries > r.keys; });
  operands.status = made.put(std::vector<std::uint32_t>{0});
  plan.clear_status(nullptr, operands.status);
  plan.run(nullptr, operands);
  CHECK(made.first_wrong() == "");
  CHECK(plan.status(operands.status).rule == (too_few ? AppendRule::kKey : AppendRule::kNone));
}

TEST_CASE("rows go to the keys of their requests, with pages and without") {
  const std::vector<Request> requests = {{1, 40, 0}, {3, 3, 0}, {0, 10, 0},  {5, 33, 7},
                                         {1, 1, 0},  {0, 0, 0}, {2, 17, 100}};
  for (const RotaryOrder order : kOrders) {
    for (const std::int64_t page_rows : {0, 1, 5, 16}) {
      AppendProblem problem = problem_of(0, order);
      problem.page_rows = page_rows;
      const std::string what = "order " + std::to_string(static_cast<int>(order)) + ", pages of " +
                               std::to_string(page_rows);
      check_requests(problem, requests, {.slabs = page_rows == 0}, what);
      check_requests(
          problem, requests,
          {.listed = true, .own_tables = page_rows > 0, .positions = order != RotaryOrder::kNone},
          what + ", listed");
    }
  }
}

TEST_CASE("where ranks have keys in turn, each writes its own and rotates all queries") {
  const std::vector<Request> requests = {
      {1, 40, 0}, {3, 3, 0}, {16, 133, 7}, {1, 1, 0}, {9, 70, 5}};
  for (const std::int64_t ranks : {1, 2, 3, 8}) {
    for (const std::int64_t block : {1, 4, 64}) {
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        AppendProblem problem = problem_of(0, RotaryOrder::kHalves);
        problem.page_rows = block == 4 ? 0 : 16;
        problem.interleave = {.block = block, .ranks = ranks, .rank = rank};
        check_requests(problem, requests, {.listed = true, .slabs = block == 4 && rank % 2 == 0},
                       "rank " + std::to_string(rank) + " of " + std::to_string(ranks) +
                           ", blocks of " + std::to_string(block));
      }
    }
  }
}

TEST_CASE("a row without a key is rotated and not written") {
  check_requests(problem_of(0, RotaryOrder::kHalves), {{1, 20, 0}, {5, 3, 0}, {2, 0, 4}}, {},
                 "more queries than keys");
}

TEST_CASE("rows find their request among many") {
  std::vector<Request> requests;
  for (int i = 0; i < 1100; ++i) requests.push_back({i % 31 == 7 ? 2 : i % 13 == 0, 3, i});
  AppendProblem problem = problem_of(0, RotaryOrder::kInterleaved);
  problem.heads = problem.kv_heads = 1;
  problem.dim_qk = problem.dim_v = 8;
  problem.page_rows = 4;
  check_requests(problem, requests, {}, "1100 requests");
  requests.resize(33);
  check_requests(problem, requests, {.listed = true}, "33 requests");
}

}  // namespace
