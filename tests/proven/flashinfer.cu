// FlashInfer's kernels for sm_80, head dim 128, planned by its own host code. They use cp.async,
// ldmatrix and mma.sync.
//
// VARIANT 0: prefill of one sequence, f16, causal, grouped heads; 1: prefill of sequences of
// various lengths, bf16; 2: the same in pages, f16, keys cut into parts that a second kernel
// merges; 3: decoding in pages, bf16, keys cut into parts.
#include <numeric>

#include <flashinfer/utils.cuh>

#include "sequences.h"

// Only one size of tile is compiled: the size that the host code chooses for these shapes.
#undef DISPATCH_CTA_TILE_Q
#define DISPATCH_CTA_TILE_Q(chosen, CTA_TILE_Q, ...)       \
  {                                                        \
    constexpr uint32_t CTA_TILE_Q = kTileQ;                \
    proven::check(chosen != CTA_TILE_Q, "rows of a tile"); \
    __VA_ARGS__                                            \
  }
#undef DISPATCH_NUM_MMA_KV
#define DISPATCH_NUM_MMA_KV(most, NUM_MMA_KV, ...)      \
  {                                                     \
    constexpr size_t NUM_MMA_KV = kTileK / 16;          \
    proven::check(most < NUM_MMA_KV, "keys of a tile"); \
    __VA_ARGS__                                         \
  }
#undef DISPATCH_GQA_GROUP_SIZE
#define DISPATCH_GQA_GROUP_SIZE(size, GROUP_SIZE, ...) \
  {                                                    \
    constexpr size_t GROUP_SIZE = kGroup;              \
    __VA_ARGS__                                        \
  }
constexpr int kTileQ = VARIANT == 2 ? 64 : 128, kTileK = 64, kGroup = VARIANT == 3 ? 4 : 2;

#include <flashinfer/attention/decode.cuh>
#include <flashinfer/attention/default_decode_params.cuh>
#include <flashinfer/attention/default_prefill_params.cuh>
#include <flashinfer/attention/prefill.cuh>
#include <flashinfer/attention/scheduler.cuh>
#include <flashinfer/attention/variants.cuh>

using namespace flashinfer;

#define CHECK(call) proven::check(static_cast<int>(call), #call)

constexpr uint32_t kDim = 128;
constexpr bool kCausal = VARIANT != 1;
constexpr auto kNoPositions = PosEncodingMode::kNone;
constexpr auto kMask = kCausal ? MaskMode::kCausal : MaskMode::kNone;
using Element = std::conditional_t<VARIANT == 0 || VARIANT == 2, half, nv_bfloat16>;
using Variant = DefaultAttention<false, false, false, false>;

// Memory for a plan, which describes the work of each CTA, and for the parts that are merged.
struct Workspace {
  proven::Array<char> floats{size_t(8) << 20}, ints{size_t(1) << 20};
  void* page_locked = nullptr;
  Workspace() { CHECK(cudaMallocHost(&page_locked, ints.bytes())); }
  int* at(int64_t offset) { return GetPtrFromBaseOffset<int>(ints.device, offset); }
};

static proven::Array<int>& to_device(proven::Array<int>& array, const std::vector<int>& numbers) {
  array.host = numbers, array.upload();
  return array;
}

// Plans a batch of prefills and stores the plan in `params`.
template <typename Params>
PrefillPlanInfo plan(const proven::Sequences& p, Params& params, Workspace& space) {
  PrefillPlanInfo info;
  std::vector<int> queries = p.query_starts(), keys = p.page ? p.page_starts() : p.key_starts();
  // With pages, keys are cut into parts of 8 pages.
  CHECK(PrefillPlan(space.floats.device, space.floats.bytes(), space.ints.device, space.page_locked,
                    space.ints.bytes(), info, queries.data(), keys.data(), p.query_rows(),
                    p.count(), p.heads, p.kv_heads, kDim, kDim, p.page ? p.page : 1, false,
                    sizeof(Element), -1, p.page ? 8 : -1, p.page == 0, 0, -1, nullptr));
  CHECK(info.cta_tile_q != kTileQ);
  CHECK(info.split_kv != (p.page != 0));
  params.request_indices = space.at(info.request_indices_offset);
  params.qo_tile_indices = space.at(info.qo_tile_indices_offset);
  params.kv_tile_indices = space.at(info.kv_tile_indices_offset);
  params.o_indptr = space.at(info.o_indptr_offset);
  params.kv_chunk_size_ptr = space.at(info.kv_chunk_size_ptr_offset);
  params.merge_indptr = space.at(info.merge_indptr_offset);
  params.padded_batch_size = info.padded_batch_size;
  params.max_total_num_rows = info.total_num_rows;
  params.partition_kv = info.split_kv;
  return info;
}

int main() {
  proven::use_device(8);
  proven::Sequences p{{256}, {384}, 4, 2, kDim, kCausal};
  if (VARIANT == 1) p = {{150, 33, 1}, {200, 64, 90}, 4, 2, kDim, false};
  if (VARIANT == 2) p = {{20, 7, 1}, {1000, 100, 1021}, 4, 2, kDim, true, 16};
  if (VARIANT == 3) p = {{1, 1, 1}, {1021, 77, 128}, 8, 2, kDim, true, 16};
  const int q_row = p.heads * kDim, k_row = p.kv_heads * kDim;
  const float scale = 1 / std::sqrt(float(kDim));
  proven::Array<Element> q(size_t(p.query_rows()) * q_row), o(q.host.size());
  proven::Array<Element> k(size_t(p.key_rows()) * k_row), v(k.host.size());
  proven::Array<int> query_starts(p.count() + 1), key_starts(p.count() + 1), last(p.count());
  proven::Array<int> table(p.page ? p.page_starts().back() : 0);
  proven::Array<float> lse(size_t(p.query_rows()) * p.heads);
  q.normal(1), k.normal(2), v.normal(3);
  Workspace space;

#if VARIANT == 0
  using Params = SinglePrefillParams<Element, Element, Element>;
  Params params(q.device, k.device, v.device, nullptr, o.device, lse.device, nullptr, p.heads,
                p.kv_heads, p.queries[0], p.keys[0], q_row, kDim, k_row, kDim, kDim, -1, 0, scale,
                1, 1e4f);
  CHECK((SinglePrefillWithKVCacheDispatched<kDim, kDim, kNoPositions, false, kMask, Variant>(
      params, static_cast<Element*>(nullptr), nullptr)));
#elif VARIANT == 1
  to_device(query_starts, p.query_starts()), to_device(key_starts, p.key_starts());
  using Params = BatchPrefillRaggedParams<Element, Element, Element, int>;
  Params params(q.device, k.device, v.device, nullptr, query_starts.device, key_starts.device,
                nullptr, nullptr, nullptr, o.device, lse.device, nullptr, p.heads, p.kv_heads,
                q_row, kDim, k_row, kDim, -1, 0, scale, 1, 1e4f);
  plan(p, params, space);
  CHECK(
      (BatchPrefillWithRaggedKVCacheDispatched<kTileQ, kDim, kDim, kNoPositions, false, kMask,
                                               Variant>(params, nullptr, nullptr, false, nullptr)));
#else
  to_device(query_starts, p.query_starts()), to_device(key_starts, p.page_starts());
  to_device(table, p.table());
  for (int s = 0; s < p.count(); ++s) last.host[s] = (p.keys[s] - 1) % p.page + 1;
  last.upload();
  paged_kv_t<Element, int> pages(p.kv_heads, p.page, kDim, p.count(), QKVLayout::kNHD, k.device,
                                 v.device, table.device, key_starts.device, last.device);
#if VARIANT == 2
  using Params = BatchPrefillPagedParams<Element, Element, Element, int>;
  Params params(q.device, pages, nullptr, query_starts.device, nullptr, nullptr, o.device,
                lse.device, nullptr, p.heads, q_row, kDim, -1, 0, scale, 1, 1e4f);
  const PrefillPlanInfo info = plan(p, params, space);
  CHECK((BatchPrefillWithPagedKVCacheDispatched<true, kTileQ, kDim, kDim, kNoPositions, false,
                                                kMask, Variant>(
      params, GetPtrFromBaseOffset<Element>(space.floats.device, info.v_offset),
      GetPtrFromBaseOffset<float>(space.floats.device, info.s_offset), false, nullptr)));
#else
  using Params = BatchDecodeParams<Element, Element, Element, int>;
  Params params(q.device, nullptr, pages, o.device, lse.device, nullptr, p.heads, q_row, kDim, -1,
                0, scale, 1, 1e4f);
  DecodePlanInfo info;
  std::vector<int> starts = p.page_starts();
  CHECK((DecodePlan<kDim, kNoPositions, Variant, Params>(
      space.floats.device, space.floats.bytes(), space.ints.device, space.page_locked,
      space.ints.bytes(), info, starts.data(), p.count(), p.heads, p.page, false, nullptr,
      BatchDecodeWithPagedKVCacheWorkEstimationDispatched<kGroup, kDim, kNoPositions, Variant,
                                                          Params>)));
  CHECK(!info.split_kv);
  params.request_indices = space.at(info.request_indices_offset);
  params.kv_tile_indices = space.at(info.kv_tile_indices_offset);
  params.o_indptr = space.at(info.o_indptr_offset);
  params.kv_chunk_size_ptr = space.at(info.kv_chunk_size_ptr_offset);
  params.padded_batch_size = info.padded_batch_size;
  CHECK((BatchDecodeWithPagedKVCacheDispatched<kDim, kNoPositions, Variant>(
      params, GetPtrFromBaseOffset<Element>(space.floats.device, info.v_offset),
      GetPtrFromBaseOffset<float>(space.floats.device, info.s_offset), false, nullptr)));
#endif
#endif
  proven::finish_launch("FlashInfer");
  o.download();
  const double bound = std::is_same_v<Element, half> ? proven::kBoundF16 : proven::kBoundBf16;
  return proven::compare(p, q.host, k.host, v.host, o.host, bound);
}
