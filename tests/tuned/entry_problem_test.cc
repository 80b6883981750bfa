#include "tuned/entry_problem.h"

#include <doctest/doctest.h>

#include "annulus/types.h"
#include "support/random_problem.h"
#include "tuned/batch_key.h"
#include "tuned/sample_entry.h"

namespace annulus::tuned {
namespace {

Entry entry_for(const Problem& problem) {
  Entry entry = test::sample_entry(0);
  entry.shape = shape_key(problem);
  entry.origin.pattern = entry.origin.score = "";
  state_problem(problem, &entry.origin);
  return entry;
}

ErrorCode refusal(const Entry& entry) {
  try {
    problem_of(entry);
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kInternal;
}

TEST_CASE("a problem comes back from its entry, where an entry can hold it") {
  int held = 0;
  for (std::uint64_t index = 0; index < 300; ++index) {
    const Problem problem = test::random_problem(7, index);
    if (problem.batch == 0 || problem.seq_q == 0) continue;
    const Entry entry = entry_for(problem);
    if (entry.origin.pattern.empty()) {
      CHECK(refusal(entry) == ErrorCode::kUnsupported);
      continue;
    }
    const Problem back = problem_of(entry);
    ++held;
    CHECK(back.pattern == problem.pattern);
    CHECK(back.score == problem.score);
    CHECK(back.q_position() == problem.q_position());
    CHECK(back.k_position() == problem.k_position());
    CHECK(back.batch == problem.batch);
    CHECK(back.heads == problem.heads);
    CHECK(back.seq_q == problem.seq_q);
    CHECK(back.seq_k == problem.seq_k);
    CHECK(back.dtype == problem.dtype);
    CHECK(back.layer == problem.layer);
    CHECK(shape_key(back) == entry.shape);
  }
  CHECK(held > 100);
}

TEST_CASE("what an entry says of its problem is checked before anything is made of it") {
  Problem problem;
  problem.heads = problem.kv_heads = 2;
  problem.seq_q = problem.seq_k = 512;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = causal();
  const Entry whole = entry_for(problem);
  REQUIRE(problem_of(whole).pattern == causal());
  const auto wrong = [&](auto change) {
    Entry entry = whole;
    change(entry);
    return refusal(entry);
  };
  CHECK(wrong([](Entry& e) { e.origin.pattern = "blocks(\"/etc/passwd\")"; }) ==
        ErrorCode::kInvalidFile);
  CHECK(wrong([](Entry& e) { e.origin.pattern = "causal; trap"; }) == ErrorCode::kInvalidFile);
  CHECK(wrong([](Entry& e) { e.origin.pattern = "dense"; }) == ErrorCode::kInvalidFile);
  CHECK(wrong([](Entry& e) { e.origin.pattern = "sum(causal, causal)"; }) ==
        ErrorCode::kInvalidFile);
  CHECK(wrong([](Entry& e) { e.origin.score = "softcap(3)"; }) == ErrorCode::kInvalidFile);
  CHECK(wrong([](Entry& e) { e.origin.seq_q = std::int64_t{1} << 60; }) == ErrorCode::kInvalidFile);
  CHECK(wrong([](Entry& e) { e.origin.seq_k = 64; }) == ErrorCode::kInvalidFile);
  CHECK(wrong([](Entry& e) { e.origin.heads = 0; }) == ErrorCode::kInvalidFile);
  CHECK(wrong([](Entry& e) { e.origin.batch = 0; }) == ErrorCode::kInvalidFile);
  CHECK(wrong([](Entry& e) { e.origin.pattern = ""; }) == ErrorCode::kUnsupported);
  problem.total_k = 1000;
  CHECK(refusal(entry_for(problem)) == ErrorCode::kUnsupported);
}

// The entry after it was written to a file's text and read again.
Entry read_back(const Entry& entry) {
  std::string device, why;
  const auto back = decode_entry(encode_entry(entry, "a device"), &device, &why);
  REQUIRE_MESSAGE(back, why);
  CHECK(*back == entry);
  return *back;
}

TEST_CASE("a selection comes back from its entry") {
  Problem problem;
  problem.heads = problem.kv_heads = 2;
  problem.seq_q = problem.seq_k = 700;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = causal();
  Selection selection;
  selection.block_rows = 64;
  selection.block_columns = 32;
  selection.rule = SelectionRule::kTopP;
  selection.max_blocks = 5;
  selection.mass = 0.75;
  selection.pool = Pool::kAntidiagonal;
  selection.stride = 8;
  selection.coarse_factor = 2;
  selection.coarse_blocks = 4;
  selection.sink_blocks = 0;
  selection.diagonal_blocks = 2;
  Entry entry = test::sample_entry(0);
  entry.shape = shape_key(problem, selection);
  state_selected(problem, selection, &entry.origin);
  const auto [whole, back] = selected_of(read_back(entry));
  CHECK(whole.pattern == causal());
  CHECK(back.block_rows == 64);
  CHECK(back.block_columns == 32);
  CHECK(back.rule == SelectionRule::kTopP);
  CHECK(back.max_blocks == 5);
  CHECK(back.mass == 0.75);
  CHECK(back.pool == Pool::kAntidiagonal);
  CHECK(back.stride == 8);
  CHECK(back.coarse_factor == 2);
  CHECK(back.coarse_blocks == 4);
  CHECK(back.sink_blocks == 0);
  CHECK(back.diagonal_blocks == 2);
  const auto wrong = [&](auto change) {
    Entry changed = entry;
    change(changed);
    try {
      selected_of(changed);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kInternal;
  };
  CHECK(wrong([](Entry& e) { e.origin.selection.reset(); }) == ErrorCode::kUnsupported);
  CHECK(wrong([](Entry& e) { e.origin.pattern = ""; }) == ErrorCode::kUnsupported);
  CHECK(wrong([](Entry& e) { e.origin.selection->block_columns = 64; }) == ErrorCode::kInvalidFile);
  CHECK(wrong([](Entry& e) { e.origin.selection->block_rows = -1; }) == ErrorCode::kInvalidFile);
  CHECK(wrong([](Entry& e) { e.origin.selection->rule = 77; }) == ErrorCode::kInvalidFile);
  CHECK(wrong([](Entry& e) { e.origin.selection->mass = -5; }) == ErrorCode::kInvalidFile);
}

TEST_CASE("a batch and its step come back from their entry") {
  BatchTarget target;
  BatchProblem& problem = target.problem;
  problem.heads = 4;
  problem.kv_heads = 2;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = causal();
  problem.score.softcap = 3;
  problem.most = {.requests = 9, .rows = 900, .rows_of_one = 300, .keys_of_one = 4000};
  problem.page_rows = 16;
  problem.row_limits = true;
  problem.interleave = {16, 4, 1};
  problem.carry_in = problem.want_lse = true;
  target.requests = batch::RequestClass::kManyQueries;
  target.step = {{200, 900}, {200, 900}, {150, 150}};
  Entry entry = test::sample_entry(0);
  entry.shape = shape_key(problem, target.requests);
  state_batch(target, &entry.origin);
  CHECK(entry.origin.requests->step == std::vector<std::int64_t>{2, 200, 900, 1, 150, 150});
  const BatchTarget back = batch_of(read_back(entry));
  CHECK(back.requests == target.requests);
  CHECK(back.problem.pattern == causal());
  CHECK(back.problem.score.softcap == 3);
  CHECK(back.problem.most.requests == 9);
  CHECK(back.problem.most.rows == 900);
  CHECK(back.problem.most.rows_of_one == 300);
  CHECK(back.problem.most.keys_of_one == 4000);
  CHECK(back.problem.most.keys == 9 * 4000);
  CHECK(back.problem.page_rows == 16);
  CHECK(back.problem.row_limits);
  CHECK(back.problem.interleave.block == 16);
  CHECK(back.problem.interleave.ranks == 4);
  CHECK(back.problem.interleave.rank == 1);
  CHECK(back.problem.carry_in);
  CHECK_FALSE(back.problem.carry_out);
  CHECK(back.problem.want_lse);
  REQUIRE(back.step.size() == 3);
  CHECK(back.step[1].queries == 200);
  CHECK(back.step[2].keys == 150);
  const auto wrong = [&](auto change) {
    Entry changed = entry;
    change(changed);
    try {
      batch_of(changed);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kInternal;
  };
  CHECK(wrong([](Entry& e) { e.origin.requests.reset(); }) == ErrorCode::kUnsupported);
  CHECK(wrong([](Entry& e) { e.origin.pattern = ""; }) == ErrorCode::kUnsupported);
  CHECK(wrong([](Entry& e) { e.origin.pattern = "blocks(\"/etc/passwd\")"; }) ==
        ErrorCode::kInvalidFile);
  CHECK(wrong([](Entry& e) { e.origin.requests->page_rows = 64; }) == ErrorCode::kInvalidFile);
  CHECK(wrong([](Entry& e) { e.origin.requests->requests = 0; }) == ErrorCode::kInvalidFile);
  CHECK(wrong([](Entry& e) { e.origin.requests->ranks = 0; }) == ErrorCode::kInvalidFile);
  CHECK(wrong([](Entry& e) { e.origin.requests->step = {}; }) == ErrorCode::kInvalidFile);
  CHECK(wrong([](Entry& e) { e.origin.requests->step = {1, 1, 900}; }) == ErrorCode::kInvalidFile);
  CHECK(wrong([](Entry& e) { e.origin.requests->step[0] = 1 << 20; }) == ErrorCode::kInvalidFile);
  CHECK(wrong([](Entry& e) { e.shape.requests = Requests::kFewQueries; }) ==
        ErrorCode::kInvalidFile);
  // A step with too many kinds of requests is left out.
  for (std::int64_t i = 0; i < 40; ++i) target.step.push_back({200, 900 + i});
  entry.origin.requests.reset();
  state_batch(target, &entry.origin);
  CHECK_FALSE(entry.origin.requests);
}

}  // namespace
}  // namespace annulus::tuned
