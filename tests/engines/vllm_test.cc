// vLLM's call shapes. The names of the test cases are the rows of docs/engines.md.

#include <doctest/doctest.h>

#include "annulus/problem.h"
#include "engines/engine_call.h"

namespace annulus::test::vllm {
namespace {

constexpr std::int64_t kBlock = 16;
constexpr std::int64_t kBlocks = EngineCall::kPool;

// The numbers of the dimensions of a tensor with K and V. `layer` is used for a tensor of all
// layers.
struct Dims {
  std::size_t kv, block, slot, head;
};
void give_cache(EngineCall& call, Tensor cache, const Dims& dims, std::int64_t layer_offset) {
  const auto at = [&](std::int64_t kv) {
    return [&, kv](std::size_t r, std::int64_t key, std::int64_t head) {
      return layer_offset + kv * cache.stride(dims.kv) +
             call.page(r, key) * cache.stride(dims.block) +
             call.slot(key) * cache.stride(dims.slot) + head * cache.stride(dims.head);
    };
  };
  call.write_k(&cache, at(0));
  call.write_v(&cache, at(1));
  const std::uint16_t* const base = call.put(cache) + layer_offset;
  call.operands.k = base;
  call.operands.v = base + cache.stride(dims.kv);
  call.operands.k_strides = {cache.stride(dims.block), cache.stride(dims.slot),
                             cache.stride(dims.head)};
  call.operands.v_strides = call.operands.k_strides;
  call.operands.k_pages = call.operands.v_pages = kBlocks;
}
constexpr Dims kTwoFirst = {0, 1, 2, 3};

// Passes a cache [2, num_blocks, block_size, num_kv_heads, head_size], and a table whose unused
// entries are blocks of former requests.
void give_step(EngineCall& call) {
  give_cache(call, Tensor({2, kBlocks, kBlock, 2, 64}), kTwoFirst, 0);
  call.metadata.k_length = call.put(call.lengths());
  call.metadata.k_pages = {call.put(call.table(20, 39)), nullptr, 20};
}

TEST_CASE("vLLM: query_start_loc") {
  EngineCall call(kMixed, kBlock);
  give_step(call);
  call.metadata.q_begin = call.put(std::vector<std::int32_t>{0, 3, 4, 24});
  call.check();
}

TEST_CASE("vLLM: seq_lens") {
  EngineCall call(kMixed, kBlock);
  give_step(call);
  call.metadata.k_length = call.put(std::vector<std::int32_t>{50, 17, 60});
  call.check();
}

TEST_CASE("vLLM: num_reqs") {
  // A graph for 6 requests. Absent requests start where the last one ends, and have no keys.
  EngineCall call({{1, 40, 0, 1}, {1, 17, 0, 2}, {0, 0}, {0, 0}, {0, 0}, {0, 0}}, kBlock);
  give_step(call);
  call.metadata.q_begin = call.put(std::vector<std::int32_t>{0, 1, 2, 2, 2, 2, 2});
  call.check();
  // Alternatively the number of requests is given, and entries after them are never read.
  call.metadata.q_begin = call.put(std::vector<std::int32_t>{0, 1, 2, -7, -7, -7, -7});
  call.metadata.k_length = call.put(std::vector<std::int32_t>{40, 17, -7, -7, -7, -7});
  call.metadata.requests = call.put(std::vector<std::int32_t>{2});
  call.check();
}

TEST_CASE("vLLM: num_actual_tokens") {
  // Q and O are padded to 8 rows. The last 5 rows belong to no request.
  EngineCall call(kDecoding, kBlock);
  give_step(call);
  Tensor q({8, 4, 64});
  call.write_q(&q, [&](std::size_t r, std::int64_t, std::int64_t head) {
    return q.offset({static_cast<std::int64_t>(r), head});
  });
  call.operands.q = call.put(q);
  const Tensor o({8, 4, 64});
  call.expect_o(o, [o](std::size_t r, std::int64_t, std::int64_t head) {
    return o.offset({static_cast<std::int64_t>(r), head});
  });
  call.operands.q_strides = call.operands.o_strides = {o.stride(0), o.stride(1)};
  call.problem.most.rows = 8;
  call.check();
  std::vector<std::uint16_t> rest(5 * 4 * 64);
  call.device.copy_to_host(rest.data(), static_cast<std::uint16_t*>(call.operands.o) + 3 * 4 * 64,
                           rest.size() * 2);
  CHECK(rest == std::vector<std::uint16_t>(rest.size(), 0x7fff));
}

TEST_CASE("vLLM: max_query_len, max_seq_len") {
  EngineCall call(kDecoding, kBlock);
  give_step(call);
  call.problem.most.rows_of_one = 1;
  call.problem.most.keys_of_one = 512;  // an upper bound
  call.problem.most.keys = 0;
  call.check();
}

TEST_CASE("vLLM: block_table_tensor") {
  EngineCall call(kMixed, kBlock);
  give_step(call);
  call.metadata.k_pages = {call.put(call.table(20, -1)), nullptr, 20};
  call.check();
}

TEST_CASE("vLLM: kv_cache, NHD") {
  EngineCall call(kMixed, kBlock);
  give_step(call);
  call.check();
  // Blocks are the first dimension.
  give_cache(call, Tensor({kBlocks, 2, kBlock, 2, 64}), {1, 0, 2, 3}, 0);
  call.check();
}

TEST_CASE("vLLM: kv_cache, HND") {
  EngineCall call(kMixed, kBlock);
  give_step(call);
  give_cache(call, Tensor({2, kBlocks, kBlock, 2, 64}, {0, 1, 3, 2, 4}), kTwoFirst, 0);
  call.check();
}

TEST_CASE("vLLM: kv_cache, all layers, NHD") {
  EngineCall call(kDecoding, kBlock);
  give_step(call);
  // [num_layers, 2, num_blocks, block_size, num_kv_heads, head_size], blocks outermost in memory.
  const Tensor cache({3, 2, kBlocks, kBlock, 2, 64}, {2, 0, 1, 3, 4, 5});
  give_cache(call, cache, {1, 2, 3, 4}, 2 * cache.stride(0));
  call.check();
}

TEST_CASE("vLLM: kv_cache, all layers, HND") {
  EngineCall call(kDecoding, kBlock);
  give_step(call);
  const Tensor cache({3, 2, kBlocks, kBlock, 2, 64}, {2, 4, 0, 1, 3, 5});
  give_cache(call, cache, {1, 2, 3, 4}, 1 * cache.stride(0));
  call.check();
}

TEST_CASE("vLLM: slot_mapping") {
  EngineCall call(kMixed, kBlock);
  give_step(call);
  // There are two more rows than tokens. Their slot is PAD_SLOT_ID.
  const std::int64_t rows = call.rows() + 2;
  Tensor key({rows, 2, 64}), value({rows, 2, 64});
  call.write_new(&key, &value);
  Tensor cache({2, kBlocks, kBlock, 2, 64});
  const auto at = [&](std::int64_t kv) {
    return call.old_only([&, kv](std::size_t r, std::int64_t of_request, std::int64_t head) {
      return cache.offset({kv, call.page(r, of_request), call.slot(of_request), head});
    });
  };
  call.write_k(&cache, at(0));
  call.write_v(&cache, at(1));
  std::uint16_t* const base = call.put(cache);
  AppendOperands where;
  where.slots = call.put_as(call.slots<std::int64_t>(2));
  call.append(key, value, base, base + cache.stride(0), AppendPlace::kSlots, where);
  call.check();
}

TEST_CASE("vLLM: causal, sliding_window") {
  EngineCall call(kMixed, kBlock);
  give_step(call);
  call.problem.pattern = Pattern::parse("causal & window(20, 0)");  // sliding_window 21
  call.check();
  call.problem.pattern = dense();  // causal False
  call.check();
}

TEST_CASE("vLLM: scale, logits_soft_cap, alibi_slopes, sinks") {
  EngineCall call(kDecoding, kBlock);
  give_step(call);
  call.problem.score = all_scores();
  call.check();
}

TEST_CASE("vLLM: softmax_lse") {
  EngineCall call(kMixed, kBlock);
  give_step(call);
  const auto begin = call.q_begins();
  const std::int64_t tokens = call.rows();
  call.expect_lse(tokens * 4,
                  [begin, tokens](std::size_t r, std::int64_t query, std::int64_t head) {
                    return head * tokens + begin[r] + query;  // [num_heads, num_tokens]
                  });
  call.operands.lse_strides = {1, tokens};
  call.check();
}

TEST_CASE("vLLM: common_prefix_len, use_cascade") {
  // All requests share two blocks of keys.
  EngineCall call({{1, 40, 0, 9}, {1, 60, 0, 9}, {1, 33, 0, 9}}, kBlock);
  give_step(call);
  const BatchProblem suffix = call.problem;
  const BatchMetadata metadata = call.metadata;
  const StatePointers state = {call.room<float>(3 * 4 * 64), call.room<float>(3 * 4),
                               call.room<float>(3 * 4)};
  call.problem.pattern = dense();
  call.problem.carry_out = true;
  call.problem.most = {.requests = 1, .rows = 3, .keys_of_one = 2 * kBlock};
  call.metadata.q_begin = call.put(std::vector<std::int32_t>{0, 3});
  call.metadata.k_length = call.put(std::vector<std::int32_t>{2 * kBlock});
  call.operands.state_out = state;
  call.check();

  call.problem = suffix;
  call.problem.carry_in = true;
  call.metadata = metadata;
  call.metadata.k_length = call.put(std::vector<std::int32_t>{8, 28, 1});
  call.metadata.k_position = call.put(std::vector<std::int32_t>{32, 32, 32});
  call.metadata.k_pages.ids += 2;  // the entries of each row after the prefix
  call.operands.state_out = {};
  call.operands.state_in = state;
  call.check();
}

TEST_CASE("vLLM: dcp_local_seq_lens") {
  // There are two ranks, and each holds every second key. The first request verifies two drafts.
  EngineCall call({{3, 41, 0, 1}, {1, 17, 0, 2}}, kBlock);
  call.problem.pattern = dense();
  call.problem.row_limits = true;
  const std::int64_t rows = call.rows();
  call.problem.want_lse = true;
  call.operands.o_strides = {4 * 64, 64};
  call.operands.lse_strides = {4, 1};
  call.metadata.k_pages = {call.put(call.table(9, 39)), nullptr, 9};
  std::vector<MergeInput> ranks;
  for (const std::int64_t rank : {0, 1}) {
    Tensor cache({2, kBlocks, kBlock, 2, 64});
    const auto at = [&](std::int64_t kv) {
      return [&, kv](std::size_t r, std::int64_t key, std::int64_t head) {
        if (key % 2 != rank) return std::int64_t{-1};
        return cache.offset({kv, call.page(r, key / 2), call.slot(key / 2), head});
      };
    };
    call.write_k(&cache, at(0));
    call.write_v(&cache, at(1));
    const std::uint16_t* const base = call.put(cache);
    call.operands.k = base;
    call.operands.v = base + cache.stride(0);
    call.operands.k_strides = {cache.stride(1), cache.stride(2), cache.stride(3)};
    call.operands.v_strides = call.operands.k_strides;
    const std::int32_t more = rank == 0 ? 1 : 0;
    call.metadata.k_length = call.put(std::vector<std::int32_t>{20 + more, 8 + more});
    std::vector<std::int32_t> row_end;
    for (const std::int32_t position : {38, 39, 40, 16}) {
      row_end.push_back(rank == 0 ? position / 2 + 1 : (position + 1) / 2);
    }
    call.metadata.row_end = call.put(row_end);
    call.operands.o = call.room<std::uint16_t>(rows * 4 * 64);
    call.operands.lse = call.room<float>(rows * 4);
    call.run();
    ranks.push_back({call.operands.o, call.operands.lse});
  }
  BatchProblem whole = call.problem;  // the oracle gets all keys of the request
  whole.pattern = causal();
  whole.row_limits = false;
  MergeOperands merged;
  merged.inputs = ranks;
  merged.input_o_strides = call.operands.o_strides;
  merged.input_lse_strides = call.operands.lse_strides;
  call.check_merged(whole, merged);
}

// Two sets of keys. The first set is the first 16 keys of each request. LSE is [num_heads,
// num_tokens].
TEST_CASE("vLLM: merge_attn_states") {
  EngineCall call(kMixed, kBlock);
  give_step(call);
  const std::int64_t tokens = call.rows();
  call.problem.want_lse = true;
  call.operands.o_strides = {4 * 64, 64};
  call.operands.lse_strides = {1, tokens};
  std::vector<MergeInput> sets;
  const BatchProblem whole = call.problem;
  const auto run = [&] {
    call.operands.o = call.room<std::uint16_t>(tokens * 4 * 64);
    call.operands.lse = call.room<float>(tokens * 4);
    call.run();
    sets.push_back({call.operands.o, call.operands.lse});
  };
  call.problem.pattern = dense();
  call.metadata.k_length = call.put(std::vector<std::int32_t>{16, 16, 16});
  run();
  call.problem = whole;
  call.metadata.k_pages.ids += 1;
  call.metadata.k_length = call.put(std::vector<std::int32_t>{34, 1, 44});
  call.metadata.k_position = call.put(std::vector<std::int32_t>{16, 16, 16});
  run();
  MergeOperands merged;
  merged.inputs = sets;
  merged.input_o_strides = call.operands.o_strides;
  merged.input_lse_strides = call.operands.lse_strides;
  call.check_merged(whole, merged);
}

TEST_CASE("vLLM: scheduler_metadata, max_num_splits") {
  EngineCall call({{1, 300, 0, 1}, {1, 70, 0, 2}}, kBlock);
  give_step(call);
  call.options.part_keys = 384;  // max_num_splits 1
  const BatchPlan plan = plan_batch(call.device, call.problem, call.options);
  CHECK(plan.info().launches == 1);
  call.check(plan);
}

TEST_CASE("vLLM: supports_batch_invariance") {
  EngineCall together({{1, 40, 0, 1}, {1, 300, 0, 2}, {3, 60, 0, 3}}, kBlock);
  EngineCall alone({{1, 300, 0, 2}}, kBlock);
  for (EngineCall* call : {&together, &alone}) {
    give_step(*call);
    call->options.part_keys = 128;
    call->check();
  }
  CHECK(together.answers()[1] == alone.answers()[0]);
}

TEST_CASE("vLLM: kv_cache_dtype, k_scale, v_scale") {
  EngineCall call(kDecoding, kBlock);
  call.problem.dtype = Dtype::kFloat8E4M3;
  CHECK(call.refused() == ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace annulus::test::vllm
