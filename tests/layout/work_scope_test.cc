// Operations whose result or loop can be much larger than their input. Each must end at the limit
// of its scope, and soon after it is cancelled.

#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "annulus/layout.h"
#include "annulus/types.h"
#include "layout/sample_layout.h"

namespace annulus {
namespace {

using test::code_of;

constexpr std::int64_t kMany = std::int64_t{1} << 24;

// A row of `columns` columns, with no kept blocks.
BlockLayout wide(std::int64_t columns) {
  return {.block_rows = 16,
          .block_columns = 16,
          .seq_q = 16,
          .seq_k = 16 * columns,
          .heads = 1,
          .indptr = {0, 0},
          .indices = {},
          .partial = {}};
}

// `distinct` heads of 512 rows for `query_heads` query heads. Each row keeps one block, and the
// first row keeps `first` blocks. Query head h has the blocks of head_of(h).
BlockLayout mapped(std::int64_t distinct, std::int64_t query_heads, std::int64_t first,
                   const std::function<std::int64_t(std::int64_t)>& head_of) {
  constexpr std::int64_t kRows = 512;
  BlockLayout layout{.block_rows = 16,
                     .block_columns = 16,
                     .seq_q = 16 * kRows,
                     .seq_k = 16 * kRows,
                     .heads = distinct,
                     .indptr = {0},
                     .indices = {},
                     .partial = {}};
  for (std::int64_t line = 0; line < distinct * kRows; ++line) {
    const std::int64_t blocks = line % kRows == 0 ? first : 1;
    for (std::int64_t column = 0; column < blocks; ++column) {
      layout.indices.push_back(static_cast<std::int32_t>(column));
    }
    layout.indptr.push_back(static_cast<std::int64_t>(layout.indices.size()));
  }
  for (std::int64_t head = 0; head < query_heads; ++head) {
    layout.head_map.push_back(static_cast<std::int32_t>(head_of(head)));
  }
  return layout;
}

// Each row of blocks sees itself and the row before it, so information passes through all rows.
BlockLayout chain(std::int64_t rows) {
  BlockLayout layout{.block_rows = 16,
                     .block_columns = 16,
                     .seq_q = 16 * rows,
                     .seq_k = 16 * rows,
                     .heads = 1,
                     .indptr = {0},
                     .indices = {},
                     .partial = {}};
  for (std::int64_t row = 0; row < rows; ++row) {
    if (row > 0) layout.indices.push_back(static_cast<std::int32_t>(row - 1));
    layout.indices.push_back(static_cast<std::int32_t>(row));
    layout.indptr.push_back(static_cast<std::int64_t>(layout.indices.size()));
  }
  return layout;
}

// A layout with one block that contains everything.
BlockLayout whole(std::int64_t size) {
  return {.block_rows = size,
          .block_columns = size,
          .seq_q = size,
          .seq_k = size,
          .heads = 1,
          .indptr = {0, 1},
          .indices = {0},
          .partial = {}};
}

struct Call {
  std::string name;
  std::function<void()> run;
  // False: most of its time goes into one array operation, which cannot be interrupted.
  bool cancellable = true;
};

// Each call takes between a million steps and more than any machine can make. The layouts have a
// few kilobytes to a few megabytes.
std::vector<Call> calls() {
  const BlockLayout shared = mapped(1, 4096, 64, [](std::int64_t) { return 0; });
  const BlockLayout some_shared = mapped(1, 64, 64, [](std::int64_t) { return 0; });
  const BlockLayout by_group = mapped(64, 4096, 1, [](std::int64_t h) { return h / 64; });
  const BlockLayout by_turn = mapped(64, 4096, 2, [](std::int64_t h) { return h % 64; });
  const std::vector<Segment> again(4096, {0, 512 * 16});
  const LayoutSizes no_columns = {1, 1, std::int64_t{1} << 40, 0, 1};
  const LayoutSizes many_rows = {1, 1, std::int64_t{1} << 24, 16, 1};
  return {
      {"transpose", [] { transpose(wide(kMany)); }},
      {"statistics", [] { statistics(wide(kMany)); }, false},
      {"with_density", [] { with_density(wide(kMany), Density{1.0}); }},
      {"reblock", [] { reblock(whole(1 << 14), 1, 1); }},
      {"reblock to many columns", [] { reblock(wide(kMany / 4), 16, 1); }, false},
      {"slice",
       [=] {
         slice(shared, again, {again.data(), 1});
       }},
      {"unite", [=] { unite(by_group, by_turn); }},
      {"intersect", [=] { intersect(by_group, by_turn); }},
      {"subtract", [=] { subtract(by_group, by_turn); }},
      {"share_heads", [=] { share_heads(shared); }},
      {"part_heads", [=] { part_heads(shared); }},
      {"difference", [=] { difference(shared, shared); }},
      {"reachability", [] { reachability(chain(1024), 1000); }},
      {"to_mask", [] { to_mask(wide(kMany)); }, false},
      {"to_bitset", [] { to_bitset(wide(4 * kMany)); }, false},
      {"to_csr", [=] { to_csr(shared); }},
      {"to_coo", [=] { to_coo(shared); }},
      {"to_topk", [=] { to_topk(shared); }},
      {"to_flex", [=] { to_flex(some_shared); }},
      {"from_mask", [=] { from_mask(no_columns, {}); }},
      {"from_bitset", [=] { from_bitset(no_columns, {}); }},
      {"from_coo", [=] { from_coo(many_rows, {}, {}, {}); }},
      {"from_topk", [=] { from_topk(many_rows, 0, {}); }},
      {"exact_layout",
       [] {
         BlockLayout empty = whole(std::int64_t{1} << 24);
         empty.indptr = {0, 0};
         empty.indices.clear();
         exact_layout(empty, {});
       },
       false},
  };
}

TEST_CASE("what makes a large layout of a small one ends at the limit of a scope") {
  for (const Call& call : calls()) {
    CAPTURE(call.name);
    const WorkScope scope({.steps = 1'000'000});
    CHECK(code_of(call.run) == ErrorCode::kLimit);
    CHECK(scope.steps() < 1'100'000);
  }
}

TEST_CASE("what makes a large layout of a small one can be cancelled") {
  for (const Call& call : calls()) {
    if (!call.cancellable) continue;
    CAPTURE(call.name);
    int asked = 0;
    const WorkScope scope({.steps = 0, .cancelled = [&] { return ++asked > 3; }});
    CHECK(code_of(call.run) == ErrorCode::kCancelled);
    CHECK(scope.steps() < 100'000'000);
  }
}

TEST_CASE("without a scope the limit is the default one") {
  CHECK(code_of([] { transpose(wide(1 << 28)); }) == ErrorCode::kLimit);
  CHECK(code_of([] { to_mask(wide(1 << 28)); }) == ErrorCode::kLimit);
  CHECK(code_of([] { from_mask({1, 1, std::int64_t{1} << 40, 0, 1}, {}); }) == ErrorCode::kLimit);
  const BlockLayout tall = transpose(wide(1 << 20));
  CHECK(tall.rows() == 1 << 20);
}

TEST_CASE("a scope counts its calls together, and takes the place of their own limits") {
  const BlockLayout layout = wide(100'000);
  const WorkScope scope({.steps = 1'000'000});
  const std::int64_t before = scope.steps();
  transpose(layout);
  const std::int64_t once = scope.steps() - before;
  CHECK(once >= 300'000);
  CHECK(code_of([&] {
          for (int i = 0; i < 10; ++i) transpose(layout);
        }) == ErrorCode::kLimit);
  // The limit of the call is not used, and a scope inside another scope has no effect.
  const LayoutSizes sizes = {16, 16, 1 << 16, 1 << 16, 1};
  CHECK(code_of([&] { make_layout(causal(), sizes, {.work = {.steps = 0}}); }) ==
        ErrorCode::kLimit);
  const WorkScope inner({.steps = 0});
  CHECK(code_of([&] { transpose(layout); }) == ErrorCode::kLimit);
}

TEST_CASE("a scope of a wrong limit, or of a call that is cancelled, is refused") {
  CHECK(code_of([] { WorkScope({.steps = -1}); }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([] { WorkScope({.cancelled = [] { return true; }}); }) == ErrorCode::kCancelled);
  CHECK(transpose(wide(8)).rows() == 8);  // no scope is left
}

}  // namespace
}  // namespace annulus
