// TensorRT-LLM's call shapes. The names of the test cases are the rows of docs/engines.md.

#include <doctest/doctest.h>

#include "engines/engine_call.h"

namespace annulus::test::tensorrt_llm {
namespace {

constexpr std::int64_t kTokens = 16;  // tokens_per_block
constexpr std::int64_t kMaxBlocks = 9;
constexpr std::int64_t kLayers = 3;

// The pool of primary blocks is [blocks, layers, K and V, Hkv, tokens, D]. An offset in the table
// counts units of [Hkv, tokens, D] from the layer's first: block * 2 * layers, and 1 more for V.
Tensor pool_of() { return Tensor({EngineCall::kPool, kLayers, 2, 2, kTokens, 64}); }

// block_offsets [batch, beam width, 2, blocks] with one beam.
std::vector<std::int32_t> offsets_of(const EngineCall& call) {
  std::vector<std::int32_t> offsets(static_cast<std::size_t>(call.count() * 2 * kMaxBlocks),
                                    -123456);
  for (std::size_t r = 0; r < call.requests().size(); ++r) {
    auto k = offsets.begin() + static_cast<std::int64_t>(r) * 2 * kMaxBlocks;
    for (const std::int32_t block : call.pages(r)) {
      *k = block * 2 * static_cast<std::int32_t>(kLayers);
      k[kMaxBlocks] = *k + 1;
      ++k;
    }
  }
  return offsets;
}

void give_pool(EngineCall& call, std::int64_t layer) {
  Tensor pool = pool_of();
  const auto at = [&](std::int64_t kv) {
    return [&, kv](std::size_t r, std::int64_t key, std::int64_t head) {
      return pool.offset({call.page(r, key), layer, kv, head, call.slot(key)});
    };
  };
  call.write_k(&pool, at(0));
  call.write_v(&pool, at(1));
  // V's offsets are one larger than K's, so both begin at the layer's first block.
  call.operands.k = call.operands.v = call.put(pool) + pool.offset({0, layer});
  const BatchStrides strides = {pool.stride(2), pool.stride(4), pool.stride(3)};
  call.operands.k_strides = call.operands.v_strides = strides;
  call.operands.k_pages = call.operands.v_pages = EngineCall::kPool * kLayers * 2;
  const std::int32_t* const offsets = call.put(offsets_of(call));
  call.metadata.k_pages = {offsets, nullptr, 2 * kMaxBlocks};
  call.metadata.v_pages = {offsets + kMaxBlocks, nullptr, 2 * kMaxBlocks};
}

void give_step(EngineCall& call) {
  give_pool(call, 0);
  call.metadata.k_length = call.put(call.lengths());
}

TEST_CASE("TensorRT-LLM: input_tensor") {
  EngineCall call(kMixed, kTokens);
  give_step(call);
  // Q, K and V of a token are consecutive: [num_tokens, (H + 2 Hkv) * D].
  Tensor input({call.rows(), 4 + 2 + 2, 64});
  const auto begin = call.q_begins();
  call.write_q(&input, [&](std::size_t r, std::int64_t query, std::int64_t head) {
    return input.offset({begin[r] + query, head});
  });
  call.operands.q = call.put(input);
  call.operands.q_strides = {input.stride(0), input.stride(1)};
  call.check();
}

TEST_CASE("TensorRT-LLM: sequence_length") {
  EngineCall call(kDecoding, kTokens);
  give_step(call);
  call.metadata.k_length = call.put(std::vector<std::int32_t>{40, 17, 100});
  call.check();
}

TEST_CASE("TensorRT-LLM: context_lengths, host_context_lengths") {
  EngineCall call({{20, 20, 0, 1}, {30, 30, 0, 2}}, kTokens);
  give_step(call);
  const std::vector<std::int32_t> context_lengths = {20, 30};
  call.metadata.q_begin = call.put(std::vector<std::int32_t>{0, 20, 20 + 30});
  call.metadata.k_length = call.put(context_lengths);
  call.check();
}

TEST_CASE("TensorRT-LLM: host_past_key_value_lengths, max_context_length") {
  EngineCall call(kDecoding, kTokens);
  give_step(call);
  call.problem.most.keys_of_one = 512;
  call.problem.most.keys = 0;
  call.check();
}

TEST_CASE("TensorRT-LLM: host_request_types") {
  // Contexts come first, and then requests that generate. One call serves both.
  EngineCall call({{40, 40, 0, 1}, {20, 60, 0, 2}, {1, 50, 0, 3}, {1, 9, 0, 4}}, kTokens);
  give_step(call);
  call.check();
}

TEST_CASE("TensorRT-LLM: block_offsets, host_block_offsets") {
  EngineCall call(kMixed, kTokens);
  give_step(call);
  call.check();
}

TEST_CASE("TensorRT-LLM: host_pool_pointers, host_kv_cache_pool_mapping") {
  EngineCall call(kDecoding, kTokens);
  give_step(call);
  give_pool(call, 2);
  call.check();
}

TEST_CASE("TensorRT-LLM: tokens_per_block") {
  EngineCall call(kDecoding, kTokens);
  CHECK(call.problem.page_rows == kTokens);
  give_step(call);
  call.check();
}

TEST_CASE("TensorRT-LLM: past_key_value_pool") {
  EngineCall call(kDecoding, 0);
  Tensor past({3, 2, 2, 128, 64});  // [batch, K and V, Hkv, max_seq_len, D], contiguous
  const auto at = [&](std::int64_t kv) {
    return [&, kv](std::size_t r, std::int64_t key, std::int64_t head) {
      return past.offset({static_cast<std::int64_t>(r), kv, head, key});
    };
  };
  call.write_k(&past, at(0));
  call.write_v(&past, at(1));
  const std::uint16_t* const base = call.put(past);
  call.operands.k = base;
  call.operands.v = base + past.stride(1);
  call.operands.k_strides = {past.stride(0), past.stride(3), past.stride(2)};
  call.operands.v_strides = call.operands.k_strides;
  call.metadata.k_length = call.put(call.lengths());
  call.check();
}

TEST_CASE("TensorRT-LLM: cache_indir, beam_width") {
  // Two beams of a request share all blocks except the last. They are two requests, whose tables
  // name the same blocks.
  EngineCall call({{1, 40, 0, 9}, {1, 47, 0, 9}}, kTokens);
  give_step(call);
  auto offsets = offsets_of(call);
  for (const std::int64_t kv : {0, 1}) {
    for (const std::int64_t block : {0, 1}) {
      const auto beam_0 = offsets.begin() + kv * kMaxBlocks + block;
      beam_0[2 * kMaxBlocks] = *beam_0;
    }
  }
  const std::int32_t* const shared = call.put(offsets);
  call.metadata.k_pages.ids = shared;
  call.metadata.v_pages.ids = shared + kMaxBlocks;
  call.check();
}

TEST_CASE("TensorRT-LLM: host_max_attention_window_sizes") {
  // A cyclic cache of 32 tokens: key i is at place i mod 32. A decoding query sees all of them, in
  // any order.
  EngineCall call({{1, 45, 0, 1}, {1, 20, 0, 2}}, kTokens);
  give_step(call);
  Tensor pool = pool_of();
  const auto at = [&](std::int64_t kv) {
    return [&, kv](std::size_t r, std::int64_t key, std::int64_t head) {
      if (key < call.requests()[r].keys - 32) return std::int64_t{-1};
      return pool.offset({call.page(r, key % 32), 0, kv, head, call.slot(key)});
    };
  };
  call.write_k(&pool, at(0));
  call.write_v(&pool, at(1));
  call.operands.k = call.operands.v = call.put(pool);
  call.metadata.k_length = call.put(std::vector<std::int32_t>{32, 20});
  call.problem.pattern = Pattern::parse("window(31, 0)");
  const Pattern seen = call.problem.pattern;
  // The oracle gets the keys in their order, and the batch gets the keys of the window in any
  // order.
  call.problem.pattern = dense();
  const BatchPlan plan = plan_batch(call.device, call.problem, call.options);
  call.problem.pattern = seen;
  call.check(plan);
}

TEST_CASE("TensorRT-LLM: spec_decoding_packed_mask") {
  EngineCall call(kDrafts, kTokens);
  give_step(call);
  // [rows, ceil(most drafts / 32)]: bit j of a row states whether the row sees draft j.
  std::vector<std::uint64_t> tree_bits;
  for (std::size_t r = 0; r < kDrafts.size(); ++r) {
    const std::int64_t drafts = kDrafts[r].queries;
    for (std::int64_t row = 0; row < drafts; ++row) {
      std::uint32_t packed = 0;
      for (std::int64_t j = 0; j < drafts; ++j) {
        const bool sees = draft_sees(r, row, kDrafts[r].keys - drafts + j);
        packed |= (sees ? 1u : 0u) << j;
      }
      std::uint64_t bits = ~std::uint64_t{0} << drafts;
      for (std::int64_t j = 0; j < drafts; ++j) {
        bits |= std::uint64_t{packed >> j & 1u} << (drafts - 1 - j);
      }
      tree_bits.push_back(bits);
    }
  }
  call.check_tree(tree_bits);
}

TEST_CASE("TensorRT-LLM: attention_mask, attention_packed_mask") {
  EngineCall call(kMixed, kTokens);
  call.problem.pattern = Pattern::parse("causal & every(3, 0)");
  CHECK(call.refused() == ErrorCode::kUnsupported);
}

TEST_CASE("TensorRT-LLM: q_scaling, attn_logit_softcapping_scale, alibi_slopes") {
  EngineCall call(kDecoding, kTokens);
  give_step(call);
  call.problem.score = all_scores();
  call.problem.score.scale = 1 / (0.5 * 8);  // 1 / (q_scaling * sqrt(head_size))
  call.check();
}

TEST_CASE("TensorRT-LLM: kv_cache_quantization_scale, kv_cache_dequantization_scale") {
  EngineCall call(kDecoding, kTokens);
  call.problem.dtype = Dtype::kFloat8E4M3;
  CHECK(call.refused() == ErrorCode::kUnsupported);
}

// The trtllm-gen kernels, with FlashInfer's interface.
TEST_CASE("TensorRT-LLM: block_tables, uses_shared_paged_kv_idx") {
  EngineCall call(kMixed, kTokens);
  give_step(call);
  // [batch_size, 2, max_num_pages_per_seq]: the pages of K, and then of V, in a tensor of both.
  Tensor cache({EngineCall::kPool, 2, 2, kTokens, 64});
  std::vector<std::int32_t> block_tables(static_cast<std::size_t>(call.count() * 2 * kMaxBlocks));
  for (std::size_t r = 0; r < call.requests().size(); ++r) {
    const auto row = block_tables.begin() + static_cast<std::int64_t>(r) * 2 * kMaxBlocks;
    std::ranges::copy(call.pages(r), row);
    std::ranges::copy(call.pages(r), row + kMaxBlocks);
  }
  const auto at = [&](std::int64_t kv) {
    return [&, kv](std::size_t r, std::int64_t key, std::int64_t head) {
      return cache.offset({call.page(r, key), kv, head, call.slot(key)});
    };
  };
  call.write_k(&cache, at(0));
  call.write_v(&cache, at(1));
  const std::uint16_t* const base = call.put(cache);
  call.operands.k = base;
  call.operands.v = base + cache.stride(1);
  call.operands.k_strides = {cache.stride(0), cache.stride(3), cache.stride(2)};
  call.operands.v_strides = call.operands.k_strides;
  const std::int32_t* const ids = call.put(block_tables);
  call.metadata.k_pages = {ids, nullptr, 2 * kMaxBlocks};
  call.metadata.v_pages = {ids + kMaxBlocks, nullptr, 2 * kMaxBlocks};
  call.check();
}

TEST_CASE("TensorRT-LLM: enable_block_sparse_attention") {
  // The pages that each head of K and V sees. Here they are numbers of the request's own pages, and
  // the table has all pages.
  EngineCall call({{1, 90, 0, 1}, {1, 17, 0, 2}, {1, 70, 0, 3}}, kTokens);
  give_step(call);
  call.problem.block_keys = kTokens;
  call.problem.max_blocks = 4;
  std::vector<std::int32_t> blocks;
  for (const Request& request : call.requests()) {
    for (std::vector<std::int32_t>& of_head : program::blocks_of(call.problem, request)) {
      of_head.resize(4, -1);
      blocks.insert(blocks.end(), of_head.begin(), of_head.end());
    }
  }
  call.metadata.blocks = call.put(blocks);
  call.check();
}

TEST_CASE("TensorRT-LLM: seq_lens, max_seq_len") {
  EngineCall call(kDecoding, kTokens);
  give_step(call);
  call.problem.most.keys_of_one = 256;  // max_seq_len
  call.problem.most.keys = 0;
  call.metadata.k_length = call.put(std::vector<std::int32_t>{40, 17, 100});
  call.check();
}

TEST_CASE("TensorRT-LLM: cum_seq_lens_q, max_q_len") {
  EngineCall call(kMixed, kTokens);
  give_step(call);
  call.problem.most.rows_of_one = 20;  // max_q_len
  call.metadata.q_begin = call.put(std::vector<std::int32_t>{0, 3, 4, 24});
  call.check();
}

TEST_CASE("TensorRT-LLM: bmm1_scale, bmm2_scale, window_left, sinks") {
  EngineCall call(kDecoding, kTokens);
  give_step(call);
  call.problem.score = all_scores();
  call.problem.score.scale = 0.125;  // bmm1_scale
  call.check();
  call.problem.score = {};
  call.problem.pattern = Pattern::parse("causal & window(20, 0)");
  call.check();
}

}  // namespace
}  // namespace annulus::test::tensorrt_llm
