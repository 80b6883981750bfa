// The call shape of torch.nn.attention.varlen. The names of the test cases are the rows of
// docs/engines.md.

#include <doctest/doctest.h>

#include "engines/engine_call.h"

namespace annulus::test::pytorch {
namespace {

constexpr std::int64_t kPage = 16;

// Passes key and value as [T_k, H_kv, D], packed like the queries.
void give_packed(EngineCall& call) {
  const auto cu_seq_k = call.begins([&](std::size_t r) { return call.requests()[r].keys; });
  Tensor key({cu_seq_k.back(), 2, 64}), value({cu_seq_k.back(), 2, 64});
  const auto at = [&](std::size_t r, std::int64_t of_request, std::int64_t head) {
    return key.offset({cu_seq_k[r] + of_request, head});
  };
  call.write_k(&key, at);
  call.write_v(&value, at);
  call.operands.k = call.put(key);
  call.operands.v = call.put(value);
  call.operands.k_strides = {0, key.stride(0), key.stride(1)};
  call.operands.v_strides = call.operands.k_strides;
  call.metadata.k_begin = call.put(cu_seq_k);
  call.metadata.k_length = call.put(call.lengths());
}

// Passes key and value as [total_pages, page_size, H_kv, D].
void give_pages(EngineCall& call) {
  Tensor key({EngineCall::kPool, kPage, 2, 64}), value({EngineCall::kPool, kPage, 2, 64});
  const auto at = [&](std::size_t r, std::int64_t of_request, std::int64_t head) {
    return key.offset({call.page(r, of_request), call.slot(of_request), head});
  };
  call.write_k(&key, at);
  call.write_v(&value, at);
  call.operands.k = call.put(key);
  call.operands.v = call.put(value);
  call.operands.k_strides = {key.stride(0), key.stride(1), key.stride(2)};
  call.operands.v_strides = call.operands.k_strides;
  call.operands.k_pages = call.operands.v_pages = EngineCall::kPool;
  call.metadata.k_length = call.put(call.lengths());
}

TEST_CASE("PyTorch: query, key, value") {
  EngineCall call(kMixed, 0);
  give_packed(call);
  call.check();
}

TEST_CASE("PyTorch: cu_seq_q, cu_seq_k") {
  EngineCall call(kMixed, 0);
  give_packed(call);
  const std::vector<std::int32_t> cu_seq_k = {0, 50, 67, 127};
  std::vector<std::int32_t> length;
  for (std::size_t r = 0; r < 3; ++r) length.push_back(cu_seq_k[r + 1] - cu_seq_k[r]);
  call.metadata.q_begin = call.put(std::vector<std::int32_t>{0, 3, 4, 24});
  call.metadata.k_begin = call.put(cu_seq_k);
  call.metadata.k_length = call.put(length);
  call.check();
}

TEST_CASE("PyTorch: max_q, max_k") {
  EngineCall call(kMixed, 0);
  give_packed(call);
  call.problem.most.rows_of_one = 20;
  call.problem.most.keys_of_one = 60;
  call.problem.most.keys = 127;
  call.check();
}

TEST_CASE("PyTorch: seqused_k") {
  // There is room for 64 keys each, of which each request uses its number of keys.
  EngineCall call(kMixed, 0);
  give_packed(call);
  Tensor key({3 * 64, 2, 64}), value({3 * 64, 2, 64});
  const auto at = [&](std::size_t r, std::int64_t of_request, std::int64_t head) {
    return key.offset({64 * static_cast<std::int64_t>(r) + of_request, head});
  };
  call.write_k(&key, at);
  call.write_v(&value, at);
  call.operands.k = call.put(key);
  call.operands.v = call.put(value);
  call.metadata.k_begin = call.put(std::vector<std::int32_t>{0, 64, 128, 192});  // cu_seq_k
  call.metadata.k_length = call.put(std::vector<std::int32_t>{50, 17, 60});      // seqused_k
  call.check();
}

TEST_CASE("PyTorch: block_table") {
  EngineCall call(kMixed, kPage);
  give_pages(call);
  call.metadata.k_pages = {call.put(call.table(5, 0)), nullptr, 5};
  call.check();
}

TEST_CASE("PyTorch: window_size") {
  EngineCall call(kMixed, 0);
  give_packed(call);
  for (const char* pattern : {"dense", "causal", "causal & window(20, 0)", "window(20, 5)"}) {
    CAPTURE(pattern);
    call.problem.pattern = Pattern::parse(pattern);
    call.check();
  }
}

TEST_CASE("PyTorch: scale, enable_gqa") {
  EngineCall call(kMixed, 0);
  give_packed(call);
  call.problem.score.scale = 0.2;
  call.check();
}

TEST_CASE("PyTorch: return_aux, lse") {
  EngineCall call(kMixed, 0);
  give_packed(call);
  const auto begin = call.q_begins();
  call.expect_lse(call.rows() * 4, [begin](std::size_t r, std::int64_t query, std::int64_t head) {
    return (begin[r] + query) * 4 + head;  // [T_q, H]
  });
  call.operands.lse_strides = {4, 1};
  call.check();
}

TEST_CASE("PyTorch: num_splits") {
  EngineCall call({{1, 300, 0, 1}, {1, 70, 0, 2}}, 0);
  give_packed(call);
  call.options.part_keys = 384;  // num_splits 1
  const BatchPlan plan = plan_batch(call.device, call.problem, call.options);
  CHECK(plan.info().launches == 1);
  call.check(plan);
}

TEST_CASE("PyTorch: varlen_attn_out, out") {
  EngineCall call(kMixed, 0);
  give_packed(call);
  Tensor query({call.rows(), 4, 64});
  const auto begin = call.q_begins();
  const EngineCall::At at = [begin](std::size_t r, std::int64_t row, std::int64_t head) {
    return ((begin[r] + row) * 4 + head) * 64;
  };
  call.write_q(&query, at);
  call.expect_o(query, at);  // O overwrites Q in place
  call.operands.q = call.operands.o;
  call.operands.q_strides = call.operands.o_strides = {query.stride(0), query.stride(1)};
  call.check();
}

}  // namespace
}  // namespace annulus::test::pytorch
