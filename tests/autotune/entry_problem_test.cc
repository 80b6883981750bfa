#include "autotune/entry_problem.h"

#include <doctest/doctest.h>

#include "annulus/error.h"
#include "autotune/sample_entry.h"
#include "support/random_problem.h"

namespace annulus::autotune {
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

}  // namespace
}  // namespace annulus::autotune
