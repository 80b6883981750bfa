// SGLang's call shapes. The names of the test cases are the rows of docs/engines.md.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engines/engine_call.h"

namespace annulus::test::sglang {
namespace {

// Pages have one row (page_size 1). The number of a row is the number of its token in the pool.
// Padded tokens are written to row 0.
constexpr std::int64_t kTokens = 400;

std::vector<Request> few() { return {{1, 14, 0, 1}, {1, 5, 0, 2}, {2, 17, 0, 3}}; }

// k_buffer and v_buffer of a layer, each [size + page_size, head_num, head_dim].
void give_buffers(EngineCall& call) {
  Tensor k({kTokens, 2, 64}), v({kTokens, 2, 64});
  const auto at = [&](std::size_t r, std::int64_t key, std::int64_t head) {
    return k.offset({call.slot_number(r, key), head});
  };
  call.write_k(&k, at);
  call.write_v(&v, at);
  call.operands.k = call.put(k);
  call.operands.v = call.put(v);
  const std::int64_t page = call.problem.page_rows * k.stride(0);
  call.operands.k_strides = call.operands.v_strides = {page, k.stride(0), k.stride(1)};
  call.operands.k_pages = call.operands.v_pages = kTokens / call.problem.page_rows;
}

// Passes kv_indptr and kv_indices for the tokens from `first` of each request on.
void give_indices(EngineCall& call, const std::vector<std::int64_t>& first) {
  std::vector<std::int32_t> kv_indices;
  for (std::size_t r = 0; r < call.requests().size(); ++r) {
    for (std::int64_t key = first[r]; key < call.requests()[r].keys; ++key) {
      kv_indices.push_back(static_cast<std::int32_t>(call.slot_number(r, key)));
    }
  }
  const auto kv_indptr =
      call.begins([&](std::size_t r) { return call.requests()[r].keys - first[r]; });
  // The buffer of indices is longer than this step needs.
  kv_indices.resize(kv_indices.size() + 9, -1);
  call.metadata.k_pages = {call.put(kv_indices), call.put(kv_indptr), 0};
}

void give_step(EngineCall& call) {
  give_buffers(call);
  give_indices(call, {0, 0, 0});
  call.metadata.k_length = call.put(call.lengths());
}

TEST_CASE("SGLang: kv_indptr, kv_indices") {
  EngineCall call(few(), 1);
  give_step(call);
  call.check();
}

TEST_CASE("SGLang: req_to_token, req_pool_indices") {
  EngineCall call(few(), 1);
  give_step(call);
  // The table is [max_running_requests, max_context_len]. This step uses its rows 5, 0 and 2, in
  // this order. They are copied into a table of the step.
  constexpr std::int64_t kContext = 32;
  const std::vector<std::int64_t> req_pool_indices = {5, 0, 2};
  std::vector<std::int32_t> req_to_token(6 * kContext, 0);
  std::vector<std::int32_t> table;
  for (std::size_t r = 0; r < 3; ++r) {
    const auto row = req_to_token.begin() + req_pool_indices[r] * kContext;
    std::ranges::copy(call.pages(r), row);
    table.insert(table.end(), row, row + kContext);
  }
  call.metadata.k_pages = {call.put(table), nullptr, kContext};
  call.check();
}

TEST_CASE("SGLang: seq_lens, kv_last_page_len") {
  EngineCall call(few(), 1);
  give_step(call);
  call.metadata.k_length = call.put(std::vector<std::int32_t>{14, 5, 17});
  call.check();
}

TEST_CASE("SGLang: k_buffer, v_buffer") {
  EngineCall call(few(), 1);
  give_step(call);
  call.check();
}

TEST_CASE("SGLang: page_table, page_size") {
  EngineCall call({{1, 40, 0, 1}, {1, 17, 0, 2}, {3, 60, 0, 3}}, 8);
  give_buffers(call);
  call.metadata.k_length = call.put(call.lengths());
  call.metadata.k_pages = {call.put(call.table(12, 0)), nullptr, 12};
  call.check();
}

TEST_CASE("SGLang: qo_indptr, extend_seq_lens, extend_prefix_lens") {
  EngineCall call({{6, 14, 0, 1}, {5, 5, 0, 2}, {1, 16, 0, 3}}, 1);
  give_step(call);
  const std::vector<std::int32_t> extend_seq_lens = {6, 5, 1}, extend_prefix_lens = {8, 0, 15};
  std::vector<std::int32_t> qo_indptr = {0}, length;
  for (std::size_t r = 0; r < 3; ++r) {
    qo_indptr.push_back(qo_indptr.back() + extend_seq_lens[r]);
    length.push_back(extend_prefix_lens[r] + extend_seq_lens[r]);
  }
  call.metadata.q_begin = call.put(qo_indptr);
  call.metadata.k_length = call.put(length);
  call.check();
}

TEST_CASE("SGLang: out_cache_loc") {
  EngineCall call(few(), 1);
  give_step(call);
  Tensor cache_k({call.rows(), 2, 64}), cache_v({call.rows(), 2, 64});
  call.write_new(&cache_k, &cache_v);
  Tensor k({kTokens, 2, 64}), v({kTokens, 2, 64});
  const auto at = call.old_only([&](std::size_t r, std::int64_t key, std::int64_t head) {
    return k.offset({call.slot_number(r, key), head});
  });
  call.write_k(&k, at);
  call.write_v(&v, at);
  AppendOperands where;
  where.slots = call.put_as(call.slots<std::int64_t>());
  call.append(cache_k, cache_v, call.put(k), call.put(v), AppendPlace::kSlots, where);
  call.check();
}

TEST_CASE("SGLang: window_kv_indptr, window_kv_indices") {
  // Only the indices of the last 8 keys of each request are given, so key 0 has a later position.
  EngineCall call({{1, 14, 0, 1}, {1, 5, 0, 2}, {1, 17, 0, 3}}, 1);
  give_step(call);
  give_indices(call, {6, 0, 9});
  call.metadata.k_length = call.put(std::vector<std::int32_t>{8, 5, 8});
  call.metadata.k_position = call.put(std::vector<std::int32_t>{6, 0, 9});
  call.problem.pattern = Pattern::parse("causal & window(7, 0)");
  call.check();
}

TEST_CASE("SGLang: scaling, logit_cap, sliding_window_size, sinks") {
  EngineCall call(few(), 1);
  give_step(call);
  call.problem.score = all_scores();
  call.check();
  call.problem.score = {};
  call.problem.pattern = Pattern::parse("causal & window(7, 0)");  // sliding_window_size 7
  call.check();
}

TEST_CASE("SGLang: custom_mask, mask_indptr") {
  EngineCall call(kDrafts, 1);
  give_step(call);
  // A byte for each pair: [rows, keys] of each request from mask_indptr on.
  std::vector<std::uint8_t> custom_mask;
  std::vector<std::size_t> mask_indptr = {0};
  for (std::size_t r = 0; r < kDrafts.size(); ++r) {
    for (std::int64_t row = 0; row < kDrafts[r].queries; ++row) {
      for (std::int64_t key = 0; key < kDrafts[r].keys; ++key) {
        custom_mask.push_back(draft_sees(r, row, key) ? 1 : 0);
      }
    }
    mask_indptr.push_back(custom_mask.size());
  }
  std::vector<std::uint64_t> tree_bits;
  for (std::size_t r = 0; r < kDrafts.size(); ++r) {
    const auto keys = static_cast<std::size_t>(kDrafts[r].keys);
    for (std::size_t end = mask_indptr[r] + keys; end <= mask_indptr[r + 1]; end += keys) {
      std::uint64_t bits = 0;
      for (std::size_t i = 0; i < std::min<std::size_t>(keys, 64); ++i) {
        bits |= std::uint64_t{custom_mask[end - 1 - i]} << i;
      }
      tree_bits.push_back(bits);
    }
  }
  call.check_tree(tree_bits);
}

TEST_CASE("SGLang: kv_cache_dtype, k_scale, v_scale") {
  EngineCall call(few(), 1);
  call.problem.dtype = Dtype::kFloat8E4M3;
  CHECK(call.refused() == ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace annulus::test::sglang
