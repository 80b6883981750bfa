// Rows that a kernel finds by groups, on the device that --device names, compared with the oracle.

#include <doctest/doctest.h>

#include "attention/on_device.h"

namespace annulus {
namespace {

TEST_CASE("kernels find rows of windows with global tokens by arithmetic, whole and in parts") {
  struct {
    const char* text;
    std::int64_t heads;
    int kv_splits;
  } const cases[] = {
      {"causal & (window(200, 0) | global(64))", 1, 1},
      {"window(70, 90) | global(100)", 1, 1},
      {"causal & (window(200, 0) | global(64))", 1, 3},
      {"heads(causal & (window(100, 0) | sink(30)), window(60, 60) | global(64))", 2, 1},
      {"global(128)", 1, 1}};
  for (const auto& [text, heads, kv_splits] : cases) {
    Problem problem = test::problem_of(9000, 9033, 32, 32, Pattern::parse(text));
    problem.heads = heads;
    const test::Case c = test::make_case(problem, 8);
    CAPTURE(c.text);
    PlanOptions options;
    options.kv_splits = kv_splits;
    const Plan plan = test::device().plan(problem, options);
    // Separate records would take 36 bytes for each row. A split has additional words for each
    // part.
    if (kv_splits == 1) CHECK(plan.info().device_bytes < 9000 / 128 * 36 * heads);
    test::check(c, test::run_case(test::device(), c, options));
  }
}

}  // namespace
}  // namespace annulus
