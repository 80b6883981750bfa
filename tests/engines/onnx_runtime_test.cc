// The call shapes of ONNX Runtime's GroupQueryAttention and PagedAttention. The names of the test
// cases are the rows of docs/engines.md.

#include <doctest/doctest.h>

#include "annulus/batch.h"
#include "engines/engine_call.h"

namespace annulus::test::onnx_runtime {
namespace {

// ---- GroupQueryAttention: every batch has the same number of new tokens.

constexpr std::int64_t kMost = 128;  // max_sequence_length of past and present

std::vector<Request> tokens() { return {{2, 40, 0, 1}, {2, 17, 0, 2}, {2, 100, 0, 3}}; }

// present_key and present_value: [batch, kv_num_heads, max_sequence_length, head_size] each.
void give_present(EngineCall& call) {
  Tensor k({call.count(), 2, kMost, 64}), v({call.count(), 2, kMost, 64});
  const auto at = [&](std::size_t r, std::int64_t key, std::int64_t head) {
    return k.offset({static_cast<std::int64_t>(r), head, key});
  };
  call.write_k(&k, at);
  call.write_v(&v, at);
  call.operands.k = call.put(k);
  call.operands.v = call.put(v);
  call.operands.k_strides = {k.stride(0), k.stride(2), k.stride(1)};
  call.operands.v_strides = call.operands.k_strides;
  call.metadata.k_length = call.put(call.lengths());
}

TEST_CASE("ONNX Runtime: GQA query, output") {
  EngineCall call(tokens(), 0);
  give_present(call);
  // [batch, sequence_length, hidden_size] equals packed rows, because all sequences have the same
  // length.
  call.metadata.q_begin = call.put(std::vector<std::int32_t>{0, 2, 4, 6});
  call.check();
}

TEST_CASE("ONNX Runtime: GQA packed QKV") {
  EngineCall call(tokens(), 0);
  give_present(call);
  Tensor query({call.count(), 2, 4 + 2 + 2, 64});
  call.write_q(&query, [&](std::size_t r, std::int64_t row, std::int64_t head) {
    return query.offset({static_cast<std::int64_t>(r), row, head});
  });
  call.operands.q = call.put(query);
  call.operands.q_strides = {query.stride(1), query.stride(2)};
  call.check();
}

TEST_CASE("ONNX Runtime: GQA past_key, past_value, present_key, present_value") {
  EngineCall call(tokens(), 0);
  give_present(call);
  call.check();
}

TEST_CASE("ONNX Runtime: GQA seqlens_k") {
  EngineCall call(tokens(), 0);
  give_present(call);
  const std::vector<std::int32_t> seqlens_k = {39, 16, 99};
  std::vector<std::int32_t> length;
  for (const std::int32_t last : seqlens_k) length.push_back(last + 1);
  call.metadata.k_length = call.put(length);
  call.check();
}

TEST_CASE("ONNX Runtime: GQA total_sequence_length") {
  EngineCall call(tokens(), 0);
  give_present(call);
  call.problem.most.keys_of_one = kMost;
  call.problem.most.keys = 0;
  call.check();
}

TEST_CASE("ONNX Runtime: GQA prompts of unlike lengths") {
  // Rows after the end of a prompt are separate requests without keys, whose O is 0.
  constexpr std::int64_t kRows = 20;
  EngineCall call({{12, 12, 0, 1}, {8, 0, 0, 0}, {20, 20, 0, 2}, {0, 0, 0, 0}}, 0);
  Tensor k({2, 2, kMost, 64}), v({2, 2, kMost, 64});
  const auto at = [&](std::size_t r, std::int64_t key, std::int64_t head) {
    return k.offset({static_cast<std::int64_t>(r) / 2, head, key});
  };
  call.write_k(&k, at);
  call.write_v(&v, at);
  call.operands.k = call.put(k);
  call.operands.v = call.put(v);
  call.operands.k_strides = {0, k.stride(2), k.stride(1)};
  call.operands.v_strides = call.operands.k_strides;
  // The begin, counted in rows.
  const auto begin = static_cast<std::int32_t>(k.stride(0) / k.stride(2));
  call.metadata.k_begin = call.put(std::vector<std::int32_t>{0, 0, begin, begin});
  call.metadata.k_length = call.put(std::vector<std::int32_t>{12, 0, 20, 0});
  call.metadata.q_begin = call.put(std::vector<std::int32_t>{0, 12, kRows, 2 * kRows, 2 * kRows});
  call.check();
}

TEST_CASE("ONNX Runtime: GQA scale, softcap, local_window_size, causal") {
  EngineCall call(tokens(), 0);
  give_present(call);
  call.problem.score = all_scores();
  call.check();
  call.problem.score = {};
  call.problem.pattern = Pattern::parse("causal & window(20, 0)");  // local_window_size 21
  call.check();
  call.problem.pattern = dense();  // causal 0
  call.check();
}

TEST_CASE("ONNX Runtime: GQA head_sink, smooth_softmax") {
  EngineCall call(tokens(), 0);
  give_present(call);
  call.problem.score = all_scores();
  call.check();
  call.problem.score.sink_logit = {0};  // smooth_softmax 1
  call.check();
}

TEST_CASE("ONNX Runtime: GQA attention_bias") {
  EngineCall call(tokens(), 0);
  give_present(call);
  // A bias that depends only on the distance is a table of the score.
  call.problem.score.bias = {{-1, 0.5, 0.25, 0, -0.5}};
  call.check();
}

// Q and K are rotated by pi at every position. The products stay the same only if both are rotated.
TEST_CASE("ONNX Runtime: GQA key, value, cos_cache, sin_cache, do_rotary, position_ids") {
  EngineCall call(tokens(), 0);
  give_present(call);
  Tensor query({call.rows(), 4, 64}), key({call.rows(), 2, 64}), value({call.rows(), 2, 64});
  call.write_q(&query, [&](std::size_t r, std::int64_t row, std::int64_t head) {
    return query.offset({2 * static_cast<std::int64_t>(r) + row, head});
  });
  call.write_new(&key, &value);
  Tensor present_k({call.count(), 2, kMost, 64}), present_v({call.count(), 2, kMost, 64});
  const auto at = call.old_only([&](std::size_t r, std::int64_t of_request, std::int64_t head) {
    return present_k.offset({static_cast<std::int64_t>(r), head, of_request});
  });
  call.write_k(&present_k, at);
  call.write_v(&present_v, at);
  // The cache holds rotated keys. All cosines are -1, so the rotation has negated them.
  for (std::uint16_t& bits : present_k.bits) bits ^= 0x8000;
  Tensor cos_cache({kMost, 32}), sin_cache({kMost, 32});
  std::ranges::fill(cos_cache.bits, std::uint16_t{0xbf80});  // -1
  std::ranges::fill(sin_cache.bits, std::uint16_t{0});

  AppendProblem problem;
  problem.place = AppendPlace::kRequests;
  problem.heads = 4;
  problem.kv_heads = 2;
  problem.dim_qk = problem.dim_v = 64;
  problem.rotary.order = RotaryOrder::kHalves;  // rotary_interleaved 0
  problem.rotary.tables = Dtype::kBfloat16;
  problem.most = call.problem.most;
  problem.most.keys_of_one = kMost;
  AppendOperands operands;
  std::uint16_t* const rotated = call.put(query);
  operands.q = operands.rotated_q = rotated;
  operands.q_strides = operands.rotated_q_strides = {query.stride(0), query.stride(1)};
  operands.new_k = call.put(key);
  operands.new_v = call.put(value);
  operands.new_k_strides = operands.new_v_strides = {key.stride(0), key.stride(1)};
  operands.k = call.put(present_k);
  operands.v = call.put(present_v);
  operands.k_strides = operands.v_strides = call.operands.k_strides;
  operands.cosines = call.put(cos_cache);
  operands.sines = call.put(sin_cache);
  operands.table_stride = cos_cache.stride(0);
  operands.table_rows = kMost;
  call.metadata.q_begin = call.put(call.q_begins());
  operands.step = call.metadata;
  plan_append(call.device, problem).run(nullptr, operands);
  call.operands.k = operands.k;
  call.operands.v = operands.v;
  call.operands.q = rotated;
  call.operands.q_strides = operands.q_strides;
  call.check();
}

TEST_CASE("ONNX Runtime: GQA sliding_window_cache") {
  // Past and present contain only the last 32 tokens, so the first of them has a later position.
  EngineCall call({{1, 40, 0, 1}, {1, 17, 0, 2}}, 0);
  call.problem.pattern = Pattern::parse("causal & window(20, 0)");
  Tensor k({2, 2, 32, 64}), v({2, 2, 32, 64});
  const auto at = [&](std::size_t r, std::int64_t key, std::int64_t head) {
    const std::int64_t place = key - std::max<std::int64_t>(call.requests()[r].keys - 32, 0);
    return place < 0 ? place : k.offset({static_cast<std::int64_t>(r), head, place});
  };
  call.write_k(&k, at);
  call.write_v(&v, at);
  call.operands.k = call.put(k);
  call.operands.v = call.put(v);
  call.operands.k_strides = {k.stride(0), k.stride(2), k.stride(1)};
  call.operands.v_strides = call.operands.k_strides;
  call.metadata.k_length = call.put(std::vector<std::int32_t>{32, 17});
  call.metadata.k_position = call.put(std::vector<std::int32_t>{8, 0});
  call.check();
}

TEST_CASE("ONNX Runtime: GQA k_quant_type, v_quant_type, kv_cache_bit_width") {
  EngineCall call(tokens(), 0);
  call.problem.dtype = Dtype::kFloat8E4M3;
  CHECK(call.refused() == ErrorCode::kUnsupported);
}

// ---- PagedAttention

constexpr std::int64_t kBlock = 16;

// key_cache and value_cache, each [num_blocks, block_size, kv_num_heads, head_size].
void give_blocks(EngineCall& call) {
  Tensor k({EngineCall::kPool, kBlock, 2, 64}), v({EngineCall::kPool, kBlock, 2, 64});
  const auto at = [&](std::size_t r, std::int64_t key, std::int64_t head) {
    return k.offset({call.page(r, key), call.slot(key), head});
  };
  call.write_k(&k, at);
  call.write_v(&v, at);
  call.operands.k = call.put(k);
  call.operands.v = call.put(v);
  call.operands.k_strides = {k.stride(0), k.stride(1), k.stride(2)};
  call.operands.v_strides = call.operands.k_strides;
  call.operands.k_pages = call.operands.v_pages = EngineCall::kPool;
  call.metadata.k_pages = {call.put(call.table(8, -1)), nullptr, 8};
  call.metadata.k_length = call.put(call.lengths());
}

TEST_CASE("ONNX Runtime: PagedAttention query") {
  EngineCall call(kMixed, kBlock);
  give_blocks(call);
  Tensor query({call.rows(), 4 + 2 + 2, 64});  // packed QKV
  const auto begin = call.q_begins();
  call.write_q(&query, [&](std::size_t r, std::int64_t row, std::int64_t head) {
    return query.offset({begin[r] + row, head});
  });
  call.operands.q = call.put(query);
  call.operands.q_strides = {query.stride(0), query.stride(1)};
  call.check();
}

TEST_CASE("ONNX Runtime: PagedAttention key_cache, value_cache, block_table") {
  EngineCall call(kMixed, kBlock);
  give_blocks(call);
  call.check();
}

TEST_CASE("ONNX Runtime: PagedAttention cumulative_sequence_length, past_seqlens") {
  EngineCall call(kMixed, kBlock);
  give_blocks(call);
  const std::vector<std::int32_t> cumulative = {0, 3, 4, 24}, past_seqlens = {47, 16, 40};
  std::vector<std::int32_t> length;
  for (std::size_t r = 0; r < 3; ++r) {
    length.push_back(past_seqlens[r] + cumulative[r + 1] - cumulative[r]);
  }
  call.metadata.q_begin = call.put(cumulative);
  call.metadata.k_length = call.put(length);
  call.check();
}

TEST_CASE("ONNX Runtime: PagedAttention key, value, slot_mapping") {
  EngineCall call(kMixed, kBlock);
  give_blocks(call);
  Tensor key({call.rows(), 2, 64}), value({call.rows(), 2, 64});
  call.write_new(&key, &value);
  // The first request's new keys are already in the cache, so its slots are -1.
  Tensor k({EngineCall::kPool, kBlock, 2, 64}), v({EngineCall::kPool, kBlock, 2, 64});
  const EngineCall::At all = [&](std::size_t r, std::int64_t of_request, std::int64_t head) {
    return k.offset({call.page(r, of_request), call.slot(of_request), head});
  };
  const EngineCall::At old = call.old_only(all);
  const auto at = [&](std::size_t r, std::int64_t of_request, std::int64_t head) {
    return (r == 0 ? all : old)(r, of_request, head);
  };
  call.write_k(&k, at);
  call.write_v(&v, at);
  std::vector<std::int32_t> slot_mapping = call.slots<std::int32_t>();
  std::fill_n(slot_mapping.begin(), call.requests()[0].queries, -1);
  AppendOperands where;
  where.slots_32 = call.put(slot_mapping);
  call.append(key, value, call.put(k), call.put(v), AppendPlace::kSlots, where);
  call.check();
}

TEST_CASE("ONNX Runtime: PagedAttention attention_metadata") {
  EngineCall call(kMixed, kBlock);
  give_blocks(call);
  call.problem.most.rows_of_one = 24;   // max_query_len_bound
  call.problem.most.keys_of_one = 128;  // max_kv_len_bound
  call.problem.most.keys = 0;
  call.check();
}

TEST_CASE("ONNX Runtime: PagedAttention is_causal, local_window_size, scale, softcap, head_sink") {
  EngineCall call(kMixed, kBlock);
  give_blocks(call);
  call.problem.pattern = dense();  // is_causal 0
  call.check();
  call.problem.pattern = Pattern::parse("causal & window(20, 0)");  // local_window_size 21
  call.check();
  call.problem.pattern = causal();
  call.problem.score = all_scores();
  call.check();
}

TEST_CASE("ONNX Runtime: PagedAttention kv_cache_layout, v_head_size") {
  EngineCall call(kDecoding, kBlock);
  call.problem.kv_heads = 1;  // LATENT
  call.problem.dim_qk = 576;
  call.problem.dim_v = 512;
  CHECK(call.refused() == ErrorCode::kUnsupported);
}

TEST_CASE("ONNX Runtime: PagedAttention k_quant_type, v_quant_type, k_cache_dtype, v_cache_dtype") {
  EngineCall call(kDecoding, kBlock);
  call.problem.dtype = Dtype::kFloat8E4M3;
  CHECK(call.refused() == ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace annulus::test::onnx_runtime
