// Appending with wrong input. The host throws typed errors. The device cannot throw, so it leaves
// out the wrong rows, reports a status, and handles all other rows correctly.

#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "annulus/types.h"
#include "api/impl.h"
#include "batch/append_case.h"
#include "device/stream.h"
#include "support/device.h"

namespace {

using namespace annulus;
using test::AppendCase;
using test::AppendedRow;
using test::KeyRow;

constexpr std::int64_t kRows = 8, kPages = 6, kPageRows = 4;

const Device& device() {
  static const Device opened = Device::open(test::device_name());
  return opened;
}

AppendProblem problem_of(AppendPlace place) {
  AppendProblem problem;
  problem.heads = 2;
  problem.dim_qk = problem.dim_v = 32;
  problem.page_rows = kPageRows;
  problem.place = place;
  problem.rotary.order = RotaryOrder::kHalves;
  problem.most.rows = kRows;
  problem.most.requests = 4;
  problem.most.keys_of_one = 12;
  return problem;
}

// The rows that lose their K and V, and those of them that also lose their Q.
struct Harm {
  AppendRule rule = AppendRule::kNone;
  std::int64_t row = 0;
  std::set<std::int64_t> keys = {};
  std::set<std::int64_t> all = {};
};

void check_run(const AppendProblem& problem, const AppendCase& made, const AppendOperands& operands,
               const Harm& harm) {
  const AppendPlan plan = plan_append(device(), problem);
  plan.clear_status(nullptr, operands.status);
  plan.run(nullptr, operands);
  CHECK(made.first_wrong() == "");
  const AppendStatus status = plan.status(operands.status);
  CHECK(status.rule == harm.rule);
  CHECK(status.row == harm.row);
}

std::vector<AppendedRow> left_of(std::vector<AppendedRow> rows, const Harm& harm) {
  for (AppendedRow& row : rows) {
    if (harm.keys.contains(row.row)) row.k.reset();
  }
  std::erase_if(rows, [&](const AppendedRow& row) { return harm.all.contains(row.row); });
  return rows;
}

// Eight rows at the slots 3 i, with something wrong.
struct SlotStep {
  std::vector<std::int64_t> slots;
  std::vector<std::int32_t> positions;
  std::int32_t rows = kRows;
  std::int64_t pages = kPages;
};
void check_slots(const std::string& what, const Harm& harm,
                 const std::function<void(SlotStep*)>& spoil, bool tables = false) {
  CAPTURE(what);
  AppendProblem problem = problem_of(AppendPlace::kSlots);
  if (tables) problem.rotary.tables = Dtype::kFloat32;
  SlotStep step;
  std::vector<AppendedRow> rows;
  for (std::int64_t row = 0; row < kRows; ++row) {
    const std::int64_t slot = 3 * row;
    step.slots.push_back(slot);
    step.positions.push_back(static_cast<std::int32_t>(10 + row));
    rows.push_back({row, 10 + row, true, KeyRow{slot / kPageRows, slot % kPageRows}});
  }
  spoil(&step);
  AppendCase made(device(), problem, left_of(rows, harm), kPages, {});
  AppendOperands operands = made.operands();
  operands.slots = made.put(step.slots);
  operands.positions_32 = made.put(step.positions);
  operands.rows = made.put(std::vector<std::int32_t>{step.rows});
  operands.k_pages = step.pages;
  operands.status = made.put(std::vector<std::uint32_t>{0});
  if (tables) made.give_tables(17, &operands);
  check_run(problem, made, operands, harm);
}

TEST_CASE("slots, positions and numbers of rows that are wrong harm their rows, and no other") {
  constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
  check_slots("all are right", {}, [](SlotStep*) {});
  check_slots("below -1", {AppendRule::kSlot, 2, {2}}, [](SlotStep* s) { s->slots[2] = -2; });
  check_slots("the least", {AppendRule::kSlot, 2, {2}},
              [](SlotStep* s) { s->slots[2] = -kEnd - 1; });
  check_slots("beyond the pages", {AppendRule::kSlot, 1, {1, 6}}, [](SlotStep* s) {
    s->slots[6] = kPages * kPageRows;
    s->slots[1] = kEnd;
  });
  check_slots("a low word that looks right", {AppendRule::kSlot, 5, {5}},
              [](SlotStep* s) { s->slots[5] = (std::int64_t{1} << 32) + 1; });
  check_slots("K has fewer pages than V", {AppendRule::kSlot, 6, {6, 7}},
              [](SlotStep* s) { s->pages = 4; });
  check_slots("more rows", {AppendRule::kRows, 0}, [](SlotStep* s) { s->rows = kRows + 1; });
  check_slots("fewer than no rows", {AppendRule::kRows, 0, {}, {0, 1, 2, 3, 4, 5, 6, 7}},
              [](SlotStep* s) { s->rows = -1; });
  check_slots("positions beyond 2^30", {AppendRule::kPosition, 3, {}, {3, 4}}, [](SlotStep* s) {
    s->positions[3] = (1 << 30) + 1;
    s->positions[4] = std::numeric_limits<std::int32_t>::min();
  });
  check_slots(
      "positions that the tables do not have", {AppendRule::kPosition, 2, {}, {2, 7}},
      [](SlotStep* s) { s->positions[2] = -1; }, true);
}

// Four requests of two rows. The keys of request r are 12, 11, 10 and 9, in pages 5 to 0.
struct RequestStep {
  std::vector<std::int32_t> q_begin = {0, 2, 4, 6, 8};
  std::vector<std::int32_t> k_length = {12, 11, 10, 9};
  std::vector<std::int32_t> ids;         // [4, 3]
  std::vector<std::int32_t> begin = {};  // the begins of the requests' ids; empty: none
  std::int32_t requests = 4;
};
void check_requests(const std::string& what, const Harm& harm,
                    const std::function<void(RequestStep*)>& spoil) {
  CAPTURE(what);
  const AppendProblem problem = problem_of(AppendPlace::kRequests);
  RequestStep step;
  std::vector<AppendedRow> rows;
  for (std::int32_t i = 0; i < 12; ++i) step.ids.push_back(11 - i);
  for (std::int64_t row = 0; row < kRows; ++row) {
    const std::int64_t request = row / 2;
    const std::int64_t key = step.k_length[static_cast<std::size_t>(request)] - 2 + row % 2;
    rows.push_back({row, key, true, KeyRow{11 - 3 * request - key / kPageRows, key % kPageRows}});
  }
  spoil(&step);
  AppendCase made(device(), problem, left_of(rows, harm), 12, {});
  AppendOperands operands = made.operands();
  operands.step.q_begin = made.put(step.q_begin);
  operands.step.k_length = made.put(step.k_length);
  operands.step.requests = made.put(std::vector<std::int32_t>{step.requests});
  operands.step.k_pages = {made.put(step.ids), step.begin.empty() ? nullptr : made.put(step.begin),
                           3};
  operands.status = made.put(std::vector<std::uint32_t>{0});
  check_run(problem, made, operands, harm);
}

TEST_CASE("lengths and pages that are wrong harm the rows of their requests, and no other") {
  const std::set<std::int64_t> all = {0, 1, 2, 3, 4, 5, 6, 7};
  check_requests("all are right", {}, [](RequestStep*) {});
  check_requests("more requests", {AppendRule::kRequests, 0},
                 [](RequestStep* s) { s->requests = 5; });
  check_requests("fewer than no requests", {AppendRule::kRequests, 0, {}, all},
                 [](RequestStep* s) { s->requests = -7; });
  check_requests("begins below 0", {AppendRule::kRequests, 0, {}, {0, 1}},
                 [](RequestStep* s) { s->q_begin[0] = -1; });
  check_requests("rows beyond the end", {AppendRule::kRequests, 3, {}, {6, 7}},
                 [](RequestStep* s) { s->q_begin[4] = 9; });
  check_requests("keys below 0", {AppendRule::kKey, 2, {}, {2, 3}},
                 [](RequestStep* s) { s->k_length[1] = -1; });
  check_requests("more keys than planned", {AppendRule::kKey, 4, {}, {4, 5}},
                 [](RequestStep* s) { s->k_length[2] = std::numeric_limits<std::int32_t>::max(); });
  check_requests("entries that begin below 0", {AppendRule::kEntry, 0, {0, 1, 2, 3}},
                 [](RequestStep* s) {
                   s->begin = {0, -3, 6, 9, 12};
                 });
  check_requests("entries that are too few", {AppendRule::kEntry, 7, {7}}, [](RequestStep* s) {
    s->begin = {0, 3, 6, 9, 11};
  });
  check_requests("a page below 0", {AppendRule::kPage, 4, {4, 5}},
                 [](RequestStep* s) { s->ids[8] = -1; });
  check_requests("a page beyond the pool", {AppendRule::kPage, 6, {6}},
                 [](RequestStep* s) { s->ids[10] = 12; });
}

// With invalid begins, rows may be left out or rotated for another request's key. But nothing
// outside may be written, and the status must report it.
TEST_CASE("begins that descend leave everything else alone") {
  const AppendProblem problem = problem_of(AppendPlace::kRequests);
  AppendCase made(device(), problem, {}, 12, {});
  AppendOperands operands = made.operands();
  const std::vector<std::int32_t> zeros(kRows * 2 * 40, 0);
  for (void* rows : {const_cast<void*>(operands.q), const_cast<void*>(operands.new_k),
                     const_cast<void*>(operands.new_v)}) {
    device().copy_to_device(rows, zeros.data(), kRows * 32 * 2);
  }
  operands.q_strides = operands.rotated_q_strides = {32, 0};
  operands.rotated_q_strides = {64, 32};
  operands.new_k_strides = operands.new_v_strides = {32, 32};
  operands.step.k_length = made.put(std::vector<std::int32_t>{12, 11, 10, 9});
  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < 12; ++i) ids.push_back(i);
  operands.step.k_pages = {made.put(ids), nullptr, 3};
  operands.status = made.put(std::vector<std::uint32_t>{0});
  const AppendPlan plan = plan_append(device(), problem);
  for (const std::vector<std::int32_t>& begins :
       {std::vector<std::int32_t>{4, 8, 2, 6, 8}, {8, 7, 6, 5, 4}, {0, 1 << 30, 0, 1, -5}}) {
    operands.step.q_begin = made.put(begins);
    plan.clear_status(nullptr, operands.status);
    plan.run(nullptr, operands);
    CHECK(plan.status(operands.status).rule == AppendRule::kRequests);
  }
}

TEST_CASE("one captured graph appends every step") {
  const device::ContextPointer& context = api::inside(device()).context;
  const abi::CudaTable& table = context->table();
  if (table.stream_begin_capture == nullptr) return;
  const AppendProblem problem = problem_of(AppendPlace::kSlots);
  const AppendPlan plan = plan_append(device(), problem);
  std::vector<AppendedRow> rows;
  for (std::int64_t row = 0; row < kRows; ++row) rows.push_back({row, 0, true, KeyRow{0, row}});
  AppendCase made(device(), problem, rows, kPages, {});
  AppendOperands operands = made.operands();
  std::int64_t* const slots = made.put(std::vector<std::int64_t>(kRows, -1));
  std::int32_t* const positions = made.put(std::vector<std::int32_t>(kRows, 0));
  std::int32_t* const count = made.put(std::vector<std::int32_t>{0});
  operands.slots = slots, operands.positions_32 = positions, operands.rows = count;
  const device::Stream stream(context);
  const device::ContextScope scope(*context);
  abi::CUgraph graph = nullptr;
  abi::CUgraphExec exec = nullptr;
  REQUIRE(table.stream_begin_capture(stream.handle(), 0) == 0);
  plan.run(stream.handle(), operands);
  REQUIRE(table.stream_end_capture(stream.handle(), &graph) == 0);
  REQUIRE(table.graph_instantiate(&exec, graph, 0) == 0);
  for (const std::int32_t step_rows : {8, 3, 0, 5}) {
    CAPTURE(step_rows);
    std::vector<std::int64_t> step_slots;
    std::vector<std::int32_t> step_positions;
    rows.clear();
    for (std::int64_t row = 0; row < step_rows; ++row) {
      step_slots.push_back((7 * row + step_rows) % (kPages * kPageRows));
      step_positions.push_back(static_cast<std::int32_t>(100 * step_rows + row));
      const std::int64_t slot = step_slots.back();
      rows.push_back(
          {row, step_positions.back(), true, KeyRow{slot / kPageRows, slot % kPageRows}});
    }
    made.expect(rows);
    device().copy_to_device(slots, step_slots.data(), step_slots.size() * 8);
    device().copy_to_device(positions, step_positions.data(), step_positions.size() * 4);
    device().copy_to_device(count, &step_rows, 4);
    REQUIRE(table.graph_launch(exec, stream.handle()) == 0);
    stream.synchronize();
    CHECK(made.first_wrong() == "");
  }
  CHECK(table.graph_exec_destroy(exec) == 0);
  CHECK(table.graph_destroy(graph) == 0);
}

TEST_CASE("what the host can see is a typed error") {
  constexpr auto kWrong = ErrorCode::kInvalidArgument;
  constexpr auto kNone = ErrorCode::kUnsupported;
  const auto refused = [](const char* what, ErrorCode code,
                          const std::function<void(AppendProblem*)>& spoil) {
    CAPTURE(what);
    AppendProblem problem = problem_of(AppendPlace::kRequests);
    spoil(&problem);
    try {
      plan_append(device(), problem);
      FAIL_CHECK("it was planned");
    } catch (const Error& error) {
      CHECK(error.code() == code);
    }
  };
  refused("negative heads", kWrong, [](AppendProblem* p) { p->heads = -1; });
  refused("no heads of K", kWrong, [](AppendProblem* p) { p->kv_heads = 0; });
  refused("no head dim", kWrong, [](AppendProblem* p) { p->dim_v = 0; });
  refused("an odd head dim", kNone, [](AppendProblem* p) { p->dim_qk = 36; });
  refused("a huge head dim", kWrong, [](AppendProblem* p) { p->dim_qk = 2048; });
  refused("e4m3", kNone, [](AppendProblem* p) { p->dtype = Dtype::kFloat8E4M3; });
  refused("fp32", kNone, [](AppendProblem* p) { p->dtype = Dtype::kFloat32; });
  refused("negative pages", kWrong, [](AppendProblem* p) { p->page_rows = -1; });
  refused("no rows", kWrong, [](AppendProblem* p) { p->most.rows = 0; });
  refused("too many rows", kWrong, [](AppendProblem* p) { p->most.rows = 1 << 28; });
  refused("no requests", kWrong, [](AppendProblem* p) { p->most.requests = 0; });
  refused("too many requests", kWrong, [](AppendProblem* p) { p->most.requests = 70000; });
  refused("no keys", kWrong, [](AppendProblem* p) { p->most.keys_of_one = 0; });
  refused("no place", kWrong, [](AppendProblem* p) { p->place = static_cast<AppendPlace>(7); });
  refused("no order", kWrong,
          [](AppendProblem* p) { p->rotary.order = static_cast<RotaryOrder>(3); });
  refused("dims beyond the head", kWrong, [](AppendProblem* p) { p->rotary.dims = 48; });
  refused("halves of 12", kNone, [](AppendProblem* p) { p->rotary.dims = 24; });
  refused("a base below 1", kWrong, [](AppendProblem* p) { p->rotary.base = 0.5; });
  refused("a base that is none", kWrong,
          [](AppendProblem* p) { p->rotary.base = std::numeric_limits<double>::quiet_NaN(); });
  refused("too few frequencies", kWrong, [](AppendProblem* p) { p->rotary.frequencies = {1}; });
  refused("a huge frequency", kWrong,
          [](AppendProblem* p) { p->rotary.frequencies.assign(16, 100.0); });
  refused("frequencies and tables", kWrong, [](AppendProblem* p) {
    p->rotary.frequencies.assign(16, 1.0);
    p->rotary.tables = Dtype::kFloat32;
  });
  refused("tables of e4m3", kNone, [](AppendProblem* p) { p->rotary.tables = Dtype::kFloat8E4M3; });
  refused("tables of no dtype", kNone,
          [](AppendProblem* p) { p->rotary.tables = static_cast<Dtype>(55); });

  const auto each_wrong = [](AppendProblem problem, const auto& give,
                             const std::vector<std::function<void(AppendOperands*)>>& spoilers) {
    const AppendPlan plan = plan_append(device(), problem);
    AppendCase made(device(), problem, {}, kPages, {});
    AppendOperands right = made.operands();
    give(&made, &right);
    CHECK_NOTHROW(plan.run(nullptr, right));
    for (std::size_t i = 0; i < spoilers.size(); ++i) {
      CAPTURE(i);
      AppendOperands operands = right;
      spoilers[i](&operands);
      CHECK_THROWS_AS(plan.run(nullptr, operands), Error);
    }
    CHECK_THROWS_AS(plan.clear_status(nullptr, nullptr), Error);
    CHECK_THROWS_AS(plan.status(nullptr), Error);
  };
  const auto by_slots = [](AppendCase* made, AppendOperands* o) {
    o->slots = made->put(std::vector<std::int64_t>(kRows, -1));
    o->positions = made->put(std::vector<std::int64_t>(kRows, 0));
    o->rows = made->put(std::vector<std::int32_t>{0});
  };
  each_wrong(
      problem_of(AppendPlace::kSlots), by_slots,
      {[](AppendOperands* o) { o->q = nullptr; }, [](AppendOperands* o) { o->rotated_q = nullptr; },
       [](AppendOperands* o) { o->new_k = nullptr; }, [](AppendOperands* o) { o->v = nullptr; },
       [](AppendOperands* o) { o->k = static_cast<std::byte*>(o->k) + 2; },
       [](AppendOperands* o) { o->k_strides.row += 4; },
       [](AppendOperands* o) { o->v_strides.row = 0; },
       [](AppendOperands* o) { o->k_strides.row = std::int64_t{1} << 31; },
       [](AppendOperands* o) { o->q_strides.head += 1; },
       [](AppendOperands* o) { o->rotated_q_strides.head = 0; },
       [](AppendOperands* o) { o->rotated_q_strides.row = 8; },  // the rows overlap
       [](AppendOperands* o) { o->k_strides.row = 8; }, [](AppendOperands* o) { o->k_pages = -1; },
       [](AppendOperands* o) { o->slots = nullptr; },
       [](AppendOperands* o) { o->slots_32 = o->rows; },
       [](AppendOperands* o) { o->positions = nullptr; },
       [](AppendOperands* o) { o->cosines = o->q; },
       [](AppendOperands* o) { o->step.q_begin = o->rows; },
       [](AppendOperands* o) { o->status = reinterpret_cast<std::uint32_t*>(2); },
       // Operands that are written over other operands.
       [](AppendOperands* o) { o->rotated_q = const_cast<void*>(o->q); },
       [](AppendOperands* o) { o->rotated_q = const_cast<void*>(o->new_k); },
       [](AppendOperands* o) { o->v = o->k; },
       [](AppendOperands* o) { o->k = const_cast<void*>(o->new_k); },
       [](AppendOperands* o) { o->k = o->rotated_q; },
       [](AppendOperands* o) {
         o->status = const_cast<std::uint32_t*>(reinterpret_cast<const std::uint32_t*>(o->rows));
       }});
  AppendProblem tables = problem_of(AppendPlace::kSlots);
  tables.rotary.tables = Dtype::kFloat32;
  each_wrong(tables,
             [&](AppendCase* made, AppendOperands* o) {
               by_slots(made, o);
               made->give_tables(4, o);
             },
             {[](AppendOperands* o) { o->cosines = nullptr; },
              [](AppendOperands* o) { o->sines = nullptr; },
              [](AppendOperands* o) { o->sines = static_cast<const std::byte*>(o->sines) + 2; },
              [](AppendOperands* o) { o->table_rows = 0; },
              [](AppendOperands* o) { o->table_stride = 15; }});
  AppendProblem copied = problem_of(AppendPlace::kSlots);
  copied.rotary.order = RotaryOrder::kNone;
  each_wrong(
      copied,
      [&](AppendCase* made, AppendOperands* o) {
        by_slots(made, o);
        o->positions = nullptr;
      },
      {[](AppendOperands* o) { o->q = o->new_k; }, [](AppendOperands* o) { o->rotated_q = o->k; },
       [](AppendOperands* o) { o->positions = o->slots; }});
  each_wrong(problem_of(AppendPlace::kRequests),
             [](AppendCase* made, AppendOperands* o) {
               o->step.requests = made->put(std::vector<std::int32_t>{0});
               o->step.q_begin = made->put(std::vector<std::int32_t>(5, 0));
               o->step.k_length = made->put(std::vector<std::int32_t>(4, 0));
               o->step.k_pages = {o->step.k_length, nullptr, 3};
             },
             {[](AppendOperands* o) { o->step.q_begin = nullptr; },
              [](AppendOperands* o) { o->step.k_length = nullptr; },
              [](AppendOperands* o) { o->step.k_pages.ids = nullptr; },
              [](AppendOperands* o) { o->step.k_pages.width = 0; },
              [](AppendOperands* o) { o->step.k_begin = o->step.k_length; },
              [](AppendOperands* o) { o->slots_32 = o->step.k_length; },
              [](AppendOperands* o) { o->rows = o->step.k_length; }});
}

}  // namespace
