// FlashInfer's call shapes. The names of the test cases are the rows of docs/engines.md.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engines/engine_call.h"

namespace annulus::test::flashinfer {
namespace {

constexpr std::int64_t kPage = 16;
constexpr std::int64_t kPool = EngineCall::kPool;

// Passes kv_indptr and kv_indices of all requests.
void give_indices(EngineCall& call) {
  std::vector<std::int32_t> indices;
  for (std::size_t r = 0; r < call.requests().size(); ++r) {
    indices.insert(indices.end(), call.pages(r).begin(), call.pages(r).end());
  }
  const auto indptr = call.begins([&](std::size_t r) { return std::ssize(call.pages(r)); });
  call.metadata.k_pages = {call.put(indices), call.put(indptr), 0};
}

// Passes one tensor [max_num_pages, 2, page_size, num_kv_heads, head_dim] (NHD).
void give_nhd(EngineCall& call, std::int64_t page_size) {
  Tensor cache({kPool, 2, page_size, 2, 64});
  call.write_k(&cache, [&](std::size_t r, std::int64_t key, std::int64_t head) {
    return cache.offset({call.page(r, key), 0, call.slot(key), head});
  });
  call.write_v(&cache, [&](std::size_t r, std::int64_t key, std::int64_t head) {
    return cache.offset({call.page(r, key), 1, call.slot(key), head});
  });
  const std::uint16_t* const base = call.put(cache);
  call.operands.k = base;
  call.operands.v = base + cache.stride(1);
  call.operands.k_strides =
      call.operands.v_strides = {cache.stride(0), cache.stride(2), cache.stride(3)};
  call.operands.k_pages = call.operands.v_pages = kPool;
}

void give_step(EngineCall& call) {
  give_indices(call);
  give_nhd(call, kPage);
  call.metadata.k_length = call.put(call.lengths());
}

TEST_CASE("FlashInfer: indptr, indices, paged_kv_indptr, paged_kv_indices") {
  EngineCall call(kDecoding, kPage);
  give_step(call);
  call.check();
}

TEST_CASE("FlashInfer: last_page_len") {
  EngineCall call(kDecoding, kPage);
  give_step(call);
  std::vector<std::int32_t> last_page_len, length;
  for (std::size_t r = 0; r < call.requests().size(); ++r) {
    last_page_len.push_back(static_cast<std::int32_t>((call.requests()[r].keys - 1) % kPage + 1));
    length.push_back(static_cast<std::int32_t>((std::ssize(call.pages(r)) - 1) * kPage) +
                     last_page_len.back());
  }
  call.metadata.k_length = call.put(length);
  call.check();
}

TEST_CASE("FlashInfer: kv_len_arr, seq_lens") {
  EngineCall call(kMixed, kPage);
  give_step(call);
  std::vector<std::int32_t> kv_len_arr;
  for (const Request& request : kMixed) kv_len_arr.push_back(static_cast<int>(request.keys));
  call.metadata.k_length = call.put(kv_len_arr);
  call.check();
}

TEST_CASE("FlashInfer: paged_kv_cache, one tensor, NHD") {
  EngineCall call(kMixed, kPage);
  give_step(call);
  call.check();
}

TEST_CASE("FlashInfer: paged_kv_cache, one tensor, HND") {
  EngineCall call(kMixed, kPage);
  give_step(call);
  Tensor cache({kPool, 2, 2, kPage, 64});  // [max_num_pages, 2, num_kv_heads, page_size, head_dim]
  call.write_k(&cache, [&](std::size_t r, std::int64_t key, std::int64_t head) {
    return cache.offset({call.page(r, key), 0, head, call.slot(key)});
  });
  call.write_v(&cache, [&](std::size_t r, std::int64_t key, std::int64_t head) {
    return cache.offset({call.page(r, key), 1, head, call.slot(key)});
  });
  const std::uint16_t* const base = call.put(cache);
  call.operands.k = base;
  call.operands.v = base + cache.stride(1);
  call.operands.k_strides =
      call.operands.v_strides = {cache.stride(0), cache.stride(3), cache.stride(2)};
  call.check();
}

TEST_CASE("FlashInfer: paged_kv_cache, (k_cache, v_cache)") {
  EngineCall call(kMixed, kPage);
  give_step(call);
  Tensor k({kPool, kPage, 2, 64}), v({kPool, 2, kPage, 64});  // one is NHD, the other is HND
  call.write_k(&k, [&](std::size_t r, std::int64_t key, std::int64_t head) {
    return k.offset({call.page(r, key), call.slot(key), head});
  });
  call.write_v(&v, [&](std::size_t r, std::int64_t key, std::int64_t head) {
    return v.offset({call.page(r, key), head, call.slot(key)});
  });
  call.operands.k = call.put(k);
  call.operands.v = call.put(v);
  call.operands.k_strides = {k.stride(0), k.stride(1), k.stride(2)};
  call.operands.v_strides = {v.stride(0), v.stride(2), v.stride(1)};
  call.check();
}

TEST_CASE("FlashInfer: page_size") {
  EngineCall call(kMixed, 5);
  give_indices(call);
  give_nhd(call, 5);
  call.metadata.k_length = call.put(call.lengths());
  call.check();
}

TEST_CASE("FlashInfer: num_qo_heads, num_kv_heads, head_dim") {
  EngineCall call(kDecoding, kPage);
  give_step(call);
  call.check();
  call.problem.heads = 3;  // not a multiple of num_kv_heads
  CHECK(call.refused() == ErrorCode::kInvalidArgument);
  call.problem.heads = 4;
  call.problem.dim_qk = call.problem.dim_v = 512;
  CHECK(call.refused() == ErrorCode::kUnsupported);
}

TEST_CASE("FlashInfer: qo_indptr") {
  // A chunk of 40 queries uses another kernel than chunks of 20 and 1.
  EngineCall call({{40, 50, 0, 1}, {1, 30, 0, 2}, {20, 60, 0, 3}}, kPage);
  give_step(call);
  call.metadata.q_begin = call.put(std::vector<std::int32_t>{0, 40, 41, 61});
  call.check();
}

TEST_CASE("FlashInfer: q_len_per_req") {
  EngineCall call({{3, 40, 0, 1}, {3, 17, 0, 2}}, kPage);
  give_step(call);
  call.metadata.q_begin = call.put(std::vector<std::int32_t>{0, 3, 6});
  call.check();
}

TEST_CASE("FlashInfer: lse, return_lse") {
  EngineCall call(kMixed, kPage);
  give_step(call);
  const auto begin = call.q_begins();
  call.expect_lse(call.rows() * 4, [begin](std::size_t r, std::int64_t query, std::int64_t head) {
    return (begin[r] + query) * 4 + head;  // [qo_indptr[-1], num_qo_heads]
  });
  call.operands.lse_strides = {4, 1};
  call.problem.lse_base = LseBase::kTwo;
  call.check();
}

TEST_CASE("FlashInfer: causal, window_left") {
  EngineCall call(kMixed, kPage);
  give_step(call);
  call.problem.pattern = Pattern::parse("causal & window(20, 0)");  // window_left 20
  call.check();
  call.problem.pattern = dense();  // causal False, window_left -1
  call.check();
}

TEST_CASE("FlashInfer: sm_scale, logits_soft_cap") {
  EngineCall call(kDecoding, kPage);
  give_step(call);
  call.problem.score = all_scores();
  call.check();
}

TEST_CASE("FlashInfer: pos_encoding_mode") {
  EngineCall call(kDecoding, kPage);  // ALIBI with the slopes of 4 heads
  give_step(call);
  call.problem.score = all_scores();
  call.check();
}

TEST_CASE("FlashInfer: sinks") {
  EngineCall call(kDecoding, kPage);
  give_step(call);
  call.problem.score = all_scores();
  call.check();
}

TEST_CASE("FlashInfer: custom_mask, packed_custom_mask") {
  EngineCall call(kDrafts, kPage);
  give_step(call);
  // packed_custom_mask contains the bits [rows, keys] of each request, one request after another.
  // Bits begin at the lowest bit of a byte, and each request begins at a byte.
  std::vector<std::uint64_t> tree_bits;
  for (std::size_t r = 0; r < kDrafts.size(); ++r) {
    const std::int64_t keys = kDrafts[r].keys;
    std::vector<std::uint8_t> packed(static_cast<std::size_t>((kDrafts[r].queries * keys + 7) / 8));
    for (std::int64_t i = 0; i < kDrafts[r].queries * keys; ++i) {
      if (draft_sees(r, i / keys, i % keys)) {
        packed[static_cast<std::size_t>(i / 8)] |= static_cast<std::uint8_t>(1 << i % 8);
      }
    }
    for (std::int64_t row = 0; row < kDrafts[r].queries; ++row) {
      std::uint64_t bits = 0;
      for (std::int64_t i = 0; i < std::min<std::int64_t>(keys, 64); ++i) {
        const std::int64_t at = row * keys + keys - 1 - i;
        const std::uint64_t bit = packed[static_cast<std::size_t>(at / 8)] >> at % 8 & 1;
        bits |= bit << i;
      }
      tree_bits.push_back(bits);
    }
  }
  call.check_tree(tree_bits);
}

TEST_CASE("FlashInfer: custom_mask of any pairs") {
  EngineCall call(kMixed, kPage);
  call.problem.pattern = Pattern::parse("causal & every(3, 0)");  // the keys are not a few runs
  CHECK(call.refused() == ErrorCode::kUnsupported);
}

TEST_CASE("FlashInfer: q_data_type, o_data_type") {
  EngineCall call(kDecoding, kPage, Dtype::kFloat16);
  give_step(call);
  call.check();
}

TEST_CASE("FlashInfer: kv_data_type, k_scale, v_scale") {
  EngineCall call(kDecoding, kPage);
  call.problem.dtype = Dtype::kFloat8E4M3;
  CHECK(call.refused() == ErrorCode::kUnsupported);
}

TEST_CASE("FlashInfer: fixed_split_size, disable_split_kv") {
  EngineCall call({{1, 300, 0, 1}, {1, 70, 0, 2}}, kPage);
  give_step(call);
  call.options.part_keys = 8 * kPage;  // the value 8 of fixed_split_size
  const BatchPlan parts = plan_batch(call.device, call.problem, call.options);
  CHECK(parts.info().part_keys == 128);
  CHECK(parts.info().launches == 2);
  call.check(parts);
  call.options.part_keys = 384;  // disable_split_kv: no request has more keys than this
  const BatchPlan whole = plan_batch(call.device, call.problem, call.options);
  CHECK(whole.info().launches == 1);
  call.check(whole);
}

TEST_CASE("FlashInfer: float_workspace_buffer, int_workspace_buffer") {
  EngineCall call(kMixed, kPage);
  const BatchPlan plan = plan_batch(call.device, call.problem, call.options);
  CHECK(plan.workspace_bytes() > 0);
  call.options.max_workspace_bytes = static_cast<std::int64_t>(plan.workspace_bytes());
  CHECK(plan_batch(call.device, call.problem, call.options).workspace_bytes() ==
        plan.workspace_bytes());
  call.options.max_workspace_bytes = 16;
  CHECK(call.refused() == ErrorCode::kOutOfMemory);
}

TEST_CASE("FlashInfer: use_cuda_graph, paged_kv_indptr_buffer, paged_kv_indices_buffer") {
  EngineCall call(kDecoding, kPage);
  give_step(call);
  // The plan permits more than the step has. A later step refills its buffers.
  call.problem.most = {.requests = 8, .rows = 8, .rows_of_one = 1, .keys_of_one = 200, .keys = 600};
  std::int32_t* const number = call.put_as<std::int32_t>({1});
  call.metadata.requests = number;
  const BatchPlan plan = plan_batch(call.device, call.problem, call.options);
  const DeviceMemory workspace = call.device.allocate(plan.workspace_bytes());
  call.metadata.q_begin = call.put(call.q_begins());
  plan.prepare(nullptr, call.metadata, workspace.data());
  const std::int32_t all = 3;
  call.device.copy_to_device(number, &all, sizeof(all));
  call.check(plan);
}

TEST_CASE("FlashInfer: append_paged_kv_cache") {
  EngineCall call(kMixed, kPage);
  give_step(call);
  Tensor append_key({call.rows(), 2, 64}), append_value({call.rows(), 2, 64});
  call.write_new(&append_key, &append_value);
  Tensor cache({kPool, 2, kPage, 2, 64});
  const auto at = [&](std::int64_t of) {
    return call.old_only([&, of](std::size_t r, std::int64_t key, std::int64_t head) {
      return cache.offset({call.page(r, key), of, call.slot(key), head});
    });
  };
  call.write_k(&cache, at(0));
  call.write_v(&cache, at(1));
  std::uint16_t* const base = call.put(cache);
  call.metadata.q_begin = call.put(call.q_begins());
  // The step determines batch_indices and positions.
  AppendOperands where;
  where.step = call.metadata;
  call.append(append_key, append_value, base, base + cache.stride(1), AppendPlace::kRequests,
              where);
  call.check();
}

// BatchAttention and the cascade wrappers join the answers of calls over parts of the keys. O and
// LSE of all parts are in [rows, parts, H, D] and [rows, parts, H] (merge_states).
TEST_CASE("FlashInfer: merge_state, merge_states") {
  EngineCall call({{4, 60, 0, 1}, {1, 50, 0, 2}}, kPage);
  give_step(call);
  const std::int64_t rows = call.rows();
  const Tensor v({rows, 2, 4, 64});
  std::uint16_t* const on_v = call.put(v);
  float* const s = call.room<float>(rows * 2 * 4);
  std::vector<MergeInput> inputs;
  const auto part = [&](std::int64_t number) {
    call.operands.o = on_v + number * v.stride(1);
    call.operands.lse = s + number * 4;
    inputs.push_back({call.operands.o, call.operands.lse});
    call.run();
  };
  call.problem.want_lse = true;
  call.problem.lse_base = LseBase::kTwo;
  call.operands.o_strides = {v.stride(0), v.stride(2)};
  call.operands.lse_strides = {2 * 4, 1};
  // The first part has the first 32 keys of each request, and the second part has the others.
  const auto indptr = call.begins([&](std::size_t r) { return std::ssize(call.pages(r)); });
  const BatchProblem whole = call.problem;
  call.problem.pattern = dense();
  call.metadata.k_length = call.put(std::vector<std::int32_t>{32, 32});
  part(0);

  call.problem = whole;
  std::vector<std::int32_t> rest;
  for (std::size_t r = 0; r < 2; ++r) {
    const auto own = call.pages(r);
    rest.insert(rest.end(), own.begin() + 2, own.end());
  }
  call.metadata.k_pages = {call.put(rest),
                           call.put(std::vector<std::int32_t>{0, indptr[1] - 2, indptr[2] - 4}), 0};
  call.metadata.k_length = call.put(std::vector<std::int32_t>{28, 18});
  call.metadata.k_position = call.put(std::vector<std::int32_t>{32, 32});
  part(1);
  MergeOperands merged;
  merged.inputs = inputs;
  merged.input_o_strides = call.operands.o_strides;
  merged.input_lse_strides = call.operands.lse_strides;
  call.check_merged(whole, merged);
}

}  // namespace
}  // namespace annulus::test::flashinfer
